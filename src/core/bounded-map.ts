export interface BoundedMapOptions<K, V> {
  /** A key that is set again becomes the newest; otherwise it keeps its place. */
  readonly isRenewed?: boolean
  readonly onEvict?: (key: K, value: V) => void
}

/** A map that never grows past its cap: the oldest key goes first. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #cap: number
  readonly #options: BoundedMapOptions<K, V>

  constructor(cap: number, options: BoundedMapOptions<K, V> = {}) {
    super()
    this.#cap = cap
    this.#options = options
  }

  override set(key: K, value: V): this {
    if (!this.has(key)) this.#makeRoom()
    else if (this.#options.isRenewed) this.delete(key)
    return super.set(key, value)
  }

  /** Sets and returns the value. */
  keep(key: K, value: V): V {
    this.set(key, value)
    return value
  }

  /** Makes a key the newest, so that it is the last to be evicted. */
  touch(key: K): void {
    const value = this.get(key)
    if (value === undefined) return
    this.delete(key)
    super.set(key, value)
  }

  /** A copy, JSON-safe when the values are. */
  saved(): [K, V][] {
    return structuredClone([...this])
  }

  /** Replaces the content with the result of saved(). */
  load(entries: unknown): void {
    if (!Array.isArray(entries)) throw new TypeError(`expected saved entries as an array, got ${typeof entries}`)
    this.clear()
    for (const entry of structuredClone(entries) as [K, V][]) this.set(entry[0], entry[1])
  }

  #makeRoom(): void {
    if (this.size < this.#cap) return
    for (const [key, value] of this) {
      this.delete(key)
      this.#options.onEvict?.(key, value)
      return
    }
  }
}
