/** What allocations are called in the timeline: by the line that made them, or by what they are for. */
import { CATEGORIES, type Categories } from '../verdict/categories.ts'
import type { Lifetimes } from '../verdict/lifetimes.ts'
import { lineOf, type Origin, originOfEarly } from '../verdict/live-set.ts'
import type { StackWordsTable } from '../verdict/stack-words.ts'

export interface Grouping {
  /** By group. */
  readonly names: readonly string[]
  ofAlloc(index: number): number
  ofEarly(block: number): number
}

export class LineGrouping implements Grouping {
  readonly names: string[] = []
  readonly #ids = new Map<string, number>()
  readonly #byOrigin = { window: new Map<number, number>(), before: new Map<number, number>(), freed: new Map<number, number>() }
  readonly #lifetimes: Lifetimes
  readonly #words: StackWordsTable

  constructor(lifetimes: Lifetimes, words: StackWordsTable) {
    this.#lifetimes = lifetimes
    this.#words = words
  }

  ofAlloc(index: number): number {
    return this.of(this.#lifetimes.trace.stack(index), 'window')
  }

  ofEarly(block: number): number {
    return this.of(this.#lifetimes.early.stacks[block] as number, originOfEarly(this.#lifetimes, block))
  }

  of(stack: number, origin: Origin): number {
    const known = this.#byOrigin[origin].get(stack)
    if (known !== undefined) return known
    const name = lineOf({ stack, origin }, this.#words)
    const id = this.#ids.get(name) ?? this.names.push(name) - 1
    this.#ids.set(name, id)
    this.#byOrigin[origin].set(stack, id)
    return id
  }
}

const CATEGORY_IDS = new Map(CATEGORIES.map((name, id) => [name, id]))

export class CategoryGrouping implements Grouping {
  readonly names = CATEGORIES.map((name) => name.replace('_', ' '))
  readonly #categories: Categories
  /** By alloc, plus one; 0: not asked for yet. */
  readonly #known: Uint8Array

  constructor(categories: Categories, events: number) {
    this.#categories = categories
    this.#known = new Uint8Array(events)
  }

  ofAlloc(index: number): number {
    const known = this.#known[index] as number
    if (known > 0) return known - 1
    const found = CATEGORY_IDS.get(this.#categories.ofAlloc(index)) as number
    this.#known[index] = found + 1
    return found
  }

  ofEarly(block: number): number {
    return CATEGORY_IDS.get(this.#categories.ofEarly(block)) as number
  }
}
