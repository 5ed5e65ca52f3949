/** A place of the web UI and its address: `#/gpu/0?range=1h`. */

export interface Place {
  /** `['gpu', '0']`; empty for the overview. */
  readonly parts: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  return {
    parts: path
      .split('/')
      .filter((part) => part !== '')
      .map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  }
}

export function placeHash(parts: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(query).toString()
  return `#/${parts.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`
}

/** A link that was cut or typed wrongly still leads somewhere. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
