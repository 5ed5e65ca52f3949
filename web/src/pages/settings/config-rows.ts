import type { ConfigAnswer } from '../../answers.ts'

export type ConfigRow = ConfigAnswer['settings'][number]

export function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'not set'
  if (typeof value === 'string') return value === '' ? '""' : value
  if (Array.isArray(value) && value.length === 0) return 'none'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export function isDefault({ from }: ConfigRow): boolean {
  return from === 'default'
}

/** Every word must be in the key, the value, the variable or the help. */
export function searchConfig(rows: readonly ConfigRow[], text: string, onlyChanged: boolean): readonly ConfigRow[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  return rows.filter((row) => {
    if (onlyChanged && isDefault(row)) return false
    const said = [row.key, valueText(row.value), row.from, row.variable, row.help].join('\n').toLowerCase()
    return words.every((word) => said.includes(word))
  })
}
