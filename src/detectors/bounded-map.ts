/** A map that never grows past its cap: the key that was added longest ago goes first. Its content is JSON-safe when its values are. */
export class BoundedMap<K extends string | number, V> {
  readonly #map = new Map<K, V>()
  readonly #cap: number
  readonly #onEvict: ((key: K, value: V) => void) | undefined

  constructor(cap: number, onEvict?: (key: K, value: V) => void) {
    this.#cap = cap
    this.#onEvict = onEvict
  }

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  set(key: K, value: V): V {
    if (!this.#map.has(key) && this.#map.size >= this.#cap) this.#evictOldest()
    this.#map.set(key, value)
    return value
  }

  /** Makes a key the newest, so that it is the last to be evicted. */
  touch(key: K): void {
    const value = this.#map.get(key)
    if (value === undefined) return
    this.#map.delete(key)
    this.#map.set(key, value)
  }

  delete(key: K): boolean {
    return this.#map.delete(key)
  }

  clear(): void {
    this.#map.clear()
  }

  keys(): IterableIterator<K> {
    return this.#map.keys()
  }

  values(): IterableIterator<V> {
    return this.#map.values()
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.#map[Symbol.iterator]()
  }

  /** Copies, so that what is kept does not change with the detector. */
  entries(): [K, V][] {
    return structuredClone([...this.#map])
  }

  /** Replaces the content with what entries() gave, possibly by way of JSON. */
  load(entries: unknown): void {
    if (!Array.isArray(entries)) throw new TypeError(`expected the saved entries of a table as an array, got ${typeof entries}`)
    this.#map.clear()
    for (const entry of structuredClone(entries) as [K, V][]) this.set(entry[0], entry[1])
  }

  #evictOldest(): void {
    const oldest = this.#map.entries().next()
    if (oldest.done) return
    this.#map.delete(oldest.value[0])
    this.#onEvict?.(oldest.value[0], oldest.value[1])
  }
}
