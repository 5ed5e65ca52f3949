/** The list of sources: one for each vendor, and those that go with them or stand in for them. Nothing is loaded before it is asked for. */
import type { SourceKind } from '../core/source-contract.ts'
import { VENDORS } from './vendors.ts'

const SOURCES: Readonly<Record<string, () => Promise<SourceKind>>> = {
  ...Object.fromEntries(VENDORS.map(({ name, load }) => [name, load])),
  host: async () => (await import('./host/index.ts')).host,
  demo: async () => (await import('./demo/index.ts')).demo,
  replay: async () => (await import('./replay.ts')).replay,
}

export async function loadSource(name: string): Promise<SourceKind> {
  const load = SOURCES[name]
  if (!load) throw new Error(`unknown source "${name}": expected one of ${Object.keys(SOURCES).join(', ')}`)
  return load()
}
