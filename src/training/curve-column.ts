/** One figure along a curve. A missing value differs from every number, NaN included. */

const FIRST_ROOM = 64

export class CurveColumn {
  #values: Float64Array
  #known: Uint8Array

  constructor(room = FIRST_ROOM) {
    this.#values = new Float64Array(room)
    this.#known = new Uint8Array(room)
  }

  get bytes(): number {
    return this.#values.byteLength + this.#known.byteLength
  }

  get(index: number): number | null {
    return this.#known[index] === 1 ? (this.#values[index] ?? null) : null
  }

  /** Only where nothing is known yet. */
  fill(index: number, value: number): void {
    if (index >= this.#values.length) this.#grow(index + 1)
    if (this.#known[index] === 1) return
    this.#values[index] = value
    this.#known[index] = 1
  }

  /** Keeps the points of `kept`, in its order; each takes the first known value from itself to the next one kept. */
  keep(kept: readonly number[], length: number): void {
    const values = this.#values
    const known = this.#known
    for (let to = 0; to < kept.length; to++) {
      let from = kept[to] ?? 0
      const next = kept[to + 1] ?? length
      while (from + 1 < next && known[from] !== 1) from++
      values[to] = values[from] ?? 0
      known[to] = known[from] ?? 0
    }
    known.fill(0, kept.length)
  }

  /** As text: eight bytes per number, in base64. */
  save(length: number): readonly [string, string] {
    return [base64(this.#values.subarray(0, length)), base64(this.#known.subarray(0, length))]
  }

  /** null: not what `save` made. */
  static from(saved: unknown, length: number): CurveColumn | null {
    if (!Array.isArray(saved) || typeof saved[0] !== 'string' || typeof saved[1] !== 'string') return null
    const values = Buffer.from(saved[0], 'base64')
    const known = Buffer.from(saved[1], 'base64')
    if (values.length !== length * 8 || known.length !== length) return null
    const column = new CurveColumn(Math.max(FIRST_ROOM, length))
    for (let index = 0; index < length; index++) column.#values[index] = values.readDoubleLE(index * 8)
    column.#known.set(known.map((flag) => (flag === 1 ? 1 : 0)))
    return column
  }

  #grow(least: number): void {
    const room = Math.max(least, this.#values.length * 2)
    const values = new Float64Array(room)
    const known = new Uint8Array(room)
    values.set(this.#values)
    known.set(this.#known)
    this.#values = values
    this.#known = known
  }
}

/** Little-endian, like every machine with a GPU that runs Node. */
function base64({ buffer, byteOffset, byteLength }: Float64Array | Uint8Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength).toString('base64')
}
