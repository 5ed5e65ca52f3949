/** The fields of one dict, taken from the stack: known keys by their id, in any order; unknown ones are left out. */
import { KEY, KEY_COUNT } from './keys.ts'
import { EMPTY_STACK, NO_STACK } from './stack-table.ts'
import { BOOL, KIND_BITS, KIND_MASK, LIST, NUMBER, STACK, TEXT } from './tokens.ts'
import type { ValueStack } from './value-stack.ts'

export class DictFields {
  readonly #tokens = new Int32Array(KEY_COUNT)
  readonly #numbers = new Float64Array(KEY_COUNT)
  /** Which dict a field was last seen in. */
  readonly #seen = new Int32Array(KEY_COUNT)
  #now = 0

  /** Keys and values take turns in [from, to). */
  take(stack: ValueStack, from: number, to: number): void {
    const { tokens, numbers } = stack
    const now = ++this.#now
    for (let i = from; i + 1 < to; i += 2) {
      const key = tokens[i] as number
      const id = key >>> KIND_BITS
      if ((key & KIND_MASK) !== TEXT || id >= KEY_COUNT) continue
      this.#seen[id] = now
      this.#tokens[id] = tokens[i + 1] as number
      this.#numbers[id] = numbers[i + 1] as number
    }
  }

  has(key: number): boolean {
    return this.#seen[key] === this.#now
  }

  /** -1: the key is missing, or its value is of another kind. */
  id(key: number, kind: number): number {
    if (this.#seen[key] !== this.#now) return -1
    const token = this.#tokens[key] as number
    return (token & KIND_MASK) === kind ? token >>> KIND_BITS : -1
  }

  /** NaN: the key is missing, or its value is no number. */
  number(key: number): number {
    return this.id(key, NUMBER) < 0 ? Number.NaN : (this.#numbers[key] as number)
  }

  /** First and count of a run; none of them where the key is missing or its list is empty. */
  run(key: number, kind: number): { first: number; count: number } {
    const first = this.id(key, kind)
    return first < 0 ? { first: 0, count: 0 } : { first, count: this.#numbers[key] as number }
  }

  isTrue(key: number): boolean {
    return this.id(key, BOOL) === 1
  }

  stack(): number {
    const id = this.id(KEY.frames, STACK)
    if (id >= 0) return id
    return this.id(KEY.frames, LIST) < 0 ? NO_STACK : EMPTY_STACK
  }
}
