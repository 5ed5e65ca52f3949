/** A pickle of plain values (dicts, lists, tuples, texts, numbers) as JavaScript's own; for files of some megabytes. */
import { PickleFault } from './opcodes.ts'
import type { ListShortcut, PickleBuilder } from './pickle-builder.ts'
import { TextTable } from './text-table.ts'
import { BOOL, DICT, KIND_BITS, KIND_MASK, LIST, NUMBER, RECORD, STACK, TEXT, token } from './tokens.ts'
import type { ValueStack } from './value-stack.ts'

export type PlainValue = null | boolean | number | string | readonly PlainValue[] | { readonly [name: string]: PlainValue }

const MOST_ITEMS = 1 << 23
const TAKEN_APART: ListShortcut = { end: 0, recognize: () => -1 }

export class ValueBuilder implements PickleBuilder {
  readonly texts = new TextTable()
  readonly #stack: ValueStack
  /** By the id of a token: what RECORD is for dicts, STACK is for lists and tuples. */
  readonly #made: (PlainValue[] | Record<string, PlainValue>)[] = []
  #items = 0

  constructor(stack: ValueStack) {
    this.#stack = stack
  }

  shortcut(): ListShortcut {
    return TAKEN_APART
  }

  check(offset: number): void {
    if (this.#items > MOST_ITEMS) throw new PickleFault(`more than ${MOST_ITEMS} values at byte ${offset}`, offset)
  }

  isTopLevel(): boolean {
    return false
  }

  fillDict(at: number, from: number, to: number): void {
    const known = this.valueAt(at)
    const dict = this.#isMade(at, RECORD)
      ? (known as Record<string, PlainValue>)
      : this.#make(at, RECORD, Object.create(null) as Record<string, PlainValue>)
    this.#items += (to - from) / 2
    for (let key = from; key + 1 < to; key += 2) dict[String(this.valueAt(key))] = this.valueAt(key + 1)
  }

  fillList(at: number, from: number, to: number): void {
    const list = this.#isMade(at, STACK) ? (this.valueAt(at) as PlainValue[]) : this.#make(at, STACK, [])
    this.#items += to - from
    for (let item = from; item < to; item++) list.push(this.valueAt(item))
  }

  tuple(at: number, from: number, to: number): void {
    const items: PlainValue[] = []
    for (let item = from; item < to; item++) items.push(this.valueAt(item))
    this.#items += items.length
    this.#make(at, STACK, items)
  }

  valueAt(at: number): PlainValue {
    const value = this.#stack.tokens[at] as number
    const id = value >>> KIND_BITS
    switch (value & KIND_MASK) {
      case TEXT:
        return this.texts.text(id)
      case NUMBER:
        return this.#stack.numbers[at] as number
      case BOOL:
        return id === 1
      case DICT:
        return {}
      case LIST:
        return []
      case RECORD:
      case STACK:
        return this.#made[id] ?? null
      default:
        return null
    }
  }

  #isMade(at: number, kind: number): boolean {
    return ((this.#stack.tokens[at] as number) & KIND_MASK) === kind
  }

  #make<Value extends PlainValue[] | Record<string, PlainValue>>(at: number, kind: number, value: Value): Value {
    this.#stack.tokens[at] = token(kind, this.#made.length)
    this.#made.push(value)
    return value
  }
}
