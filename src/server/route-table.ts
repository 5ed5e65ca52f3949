/** Finds the route of a request: by its path, then by its method. */
import type { Route } from '../core/route.ts'

export interface Found {
  /** null: the path exists, but not with this method. */
  readonly route: Route | null
  /** The methods of the path. */
  readonly methods: readonly string[]
  readonly params: Readonly<Record<string, string>>
}

interface Place {
  readonly parts: readonly string[]
  readonly byMethod: Map<string, Route>
}

/** null: there is nothing at this path. */
export function createRouteTable(routes: readonly Route[]): (method: string, path: string) => Found | null {
  const places = new Map<string, Place>()
  for (const entry of routes) {
    const place = places.get(entry.path) ?? { parts: entry.path.split('/'), byMethod: new Map() }
    places.set(entry.path, place)
    place.byMethod.set(entry.method, entry)
  }
  const withParameters = [...places.values()].filter(({ parts }) => parts.some(isParameter))
  return (method, path) => {
    const parts = path.split('/')
    const place = places.get(path) ?? withParameters.find((one) => fits(one.parts, parts))
    if (!place) return null
    // HEAD is GET without its body, which Node.js leaves out.
    const found = place.byMethod.get(method === 'HEAD' ? 'GET' : method) ?? null
    return { route: found, methods: [...place.byMethod.keys()], params: parametersOf(place.parts, parts) }
  }
}

/** Of a request line: `/path?query`, or the whole address as proxies send it. */
export function pathOf(target: string): string {
  const path = target.startsWith('/') || !URL.canParse(target) ? target : new URL(target).pathname
  return path.split('?', 1)[0] ?? path
}

function isParameter(part: string): boolean {
  return part.startsWith(':')
}

function fits(wanted: readonly string[], given: readonly string[]): boolean {
  return wanted.length === given.length && wanted.every((part, at) => (isParameter(part) ? given[at] !== '' : part === given[at]))
}

function parametersOf(wanted: readonly string[], given: readonly string[]): Record<string, string> {
  return Object.fromEntries(wanted.flatMap((part, at) => (isParameter(part) ? [[part.slice(1), decoded(given[at] ?? '')]] : [])))
}

/** Unchanged where the encoding is invalid: then nothing has that name. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
