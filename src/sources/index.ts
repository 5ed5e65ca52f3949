/** The list of sources. A new vendor is one folder and one line here; nothing is loaded before it is asked for. */
import type { SourceKind } from '../core/kinds.ts'

const SOURCES: Readonly<Record<string, () => Promise<SourceKind>>> = {
  nvidia: async () => (await import('./nvidia/index.ts')).nvidia,
  amd: async () => (await import('./amd/index.ts')).amd,
  host: async () => (await import('./host/index.ts')).host,
  demo: async () => (await import('./demo/index.ts')).demo,
  replay: async () => (await import('./replay.ts')).replay,
}

/** Those that `auto` looks for. */
export const VENDOR_SOURCES: readonly string[] = ['nvidia', 'amd']

export const SOURCE_NAMES: readonly string[] = Object.keys(SOURCES)

export async function loadSource(name: string): Promise<SourceKind> {
  const load = SOURCES[name]
  if (!load) throw new Error(`unknown source "${name}": expected one of ${SOURCE_NAMES.join(', ')}`)
  return load()
}
