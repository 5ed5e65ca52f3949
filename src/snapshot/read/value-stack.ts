/** The stack of the pickle machine: tokens, the numbers that belong to them, where a container stands in the memo, and the marks. */
import { opcodeName, PickleFault } from './opcodes.ts'
import { isRun, KIND_BITS, KIND_MASK } from './tokens.ts'

/** Records are merged into runs as they are made, so that real files need some hundreds. */
const MOST_VALUES = 1 << 21
const MOST_MARKS = 1000

export class ValueStack {
  tokens = new Int32Array(1 << 12)
  numbers = new Float64Array(1 << 12)
  /** Index in the memo + 1 of a container that is still to be filled; 0: none. */
  slots = new Int32Array(1 << 12)
  top = 0
  /** How high the stack was at each. */
  readonly #marks = new Int32Array(MOST_MARKS)
  markCount = 0

  grow(offset: number): void {
    const size = this.tokens.length * 2
    if (size > MOST_VALUES) throw new PickleFault(`more than ${MOST_VALUES} values wait on the stack at byte ${offset}`, offset)
    const [tokens, numbers, slots] = [new Int32Array(size), new Float64Array(size), new Int32Array(size)]
    tokens.set(this.tokens)
    numbers.set(this.numbers)
    slots.set(this.slots)
    this.tokens = tokens
    this.numbers = numbers
    this.slots = slots
  }

  mark(height: number, offset: number): void {
    if (this.markCount === MOST_MARKS) throw new PickleFault(`nested more than ${MOST_MARKS} deep at byte ${offset}`, offset)
    this.#marks[this.markCount++] = height
  }

  /** Height at the last mark, which is taken away. */
  popMark(opcode: number, offset: number): number {
    if (this.markCount === 0) throw new PickleFault(`${opcodeName(opcode)} at byte ${offset} without a MARK before it`, offset)
    return this.#marks[--this.markCount] as number
  }

  /** Values below this belong to what was begun before the last mark. */
  get floor(): number {
    return this.markCount === 0 ? 0 : (this.#marks[this.markCount - 1] as number)
  }

  /** A record at `at` that continues the run below it becomes a part of it. Gives the height of the stack. */
  merge(at: number): number {
    const { tokens, numbers } = this
    if (at - 1 < this.floor) return at + 1
    const [below, record] = [tokens[at - 1] as number, tokens[at] as number]
    const isNext = (below & KIND_MASK) === (record & KIND_MASK) && isRun(record & KIND_MASK)
    if (!isNext || (below >>> KIND_BITS) + (numbers[at - 1] as number) !== record >>> KIND_BITS) return at + 1
    numbers[at - 1] = (numbers[at - 1] as number) + (numbers[at] as number)
    return at
  }
}
