/** Where the person is: every view and time range has an address of its own, so that a link shows what its sender saw. */
import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { type Place, parsePlace, placeHash } from './place.ts'

const hash = signal(globalThis.location?.hash ?? '')

globalThis.addEventListener?.('hashchange', () => {
  hash.value = location.hash
})

export const place: ReadonlySignal<Place> = computed(() => parsePlace(hash.value))

export function go(parts: readonly string[], query: Readonly<Record<string, string>> = {}): void {
  location.hash = placeHash(parts, query)
}

/** Changes parts of the query without a new entry in the browser's history; null removes. */
export function setQuery(changes: Readonly<Record<string, string | null>>): void {
  const query = { ...place.value.query }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete query[name]
    else query[name] = value
  }
  const next = placeHash(place.value.parts, query)
  if (next === location.hash) return
  history.replaceState(null, '', next)
  hash.value = next
}
