/** JSON with {{placeholders}}: values go into the parsed structure, so that no text can break out of its string. */
const PLACEHOLDER = /\{\{\s*([\w.]+)\s*\}\}/g
const ONLY_PLACEHOLDER = /^\{\{\s*([\w.]+)\s*\}\}$/

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** A text that is only a placeholder becomes the value itself: a number stays a number, a list a list. */
export function fillTemplate(template: Json, values: unknown): Json {
  if (typeof template === 'string') return fillText(template, values)
  if (Array.isArray(template)) return template.map((item: Json) => fillTemplate(item, values))
  if (template === null || typeof template !== 'object') return template
  return Object.fromEntries(Object.entries(template).map(([key, item]) => [key, fillTemplate(item, values)]))
}

function fillText(text: string, values: unknown): Json {
  const only = ONLY_PLACEHOLDER.exec(text)
  if (only) return (valueAt(values, only[1] ?? '') ?? null) as Json
  return text.replace(PLACEHOLDER, (_, path: string) => {
    const value = valueAt(values, path)
    return value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
  })
}

function valueAt(values: unknown, path: string): unknown {
  let current = values
  for (const name of path.split('.')) {
    if (current === null || typeof current !== 'object' || !Object.hasOwn(current, name)) return undefined
    current = (current as Readonly<Record<string, unknown>>)[name]
  }
  return current
}

/** First names of all placeholders, to refuse those that can never be filled. */
export function placeholderRoots(template: Json): Set<string> {
  const roots = new Set<string>()
  const walk = (node: Json) => {
    if (typeof node === 'string') for (const [, path = ''] of node.matchAll(PLACEHOLDER)) roots.add(path.split('.')[0] ?? '')
    else if (node !== null && typeof node === 'object') Object.values(node).forEach(walk)
  }
  walk(template)
  return roots
}
