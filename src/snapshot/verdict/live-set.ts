/** What was in use at a moment, by stack and category, and from there by line, module and category. Sums are exact. */
import { ACTION } from '../read/keys.ts'
import { EMPTY_STACK, NO_STACK } from '../read/stack-table.ts'
import { CATEGORIES, type Categories, type Category } from './categories.ts'
import type { Lifetimes } from './lifetimes.ts'
import type { Selection } from './selection.ts'
import type { StackWordsTable } from './stack-words.ts'

/** In the window; before its first event; or before it and freed in it, so that the stack is that of the free. */
export type Origin = 'window' | 'before' | 'freed'

/** One stack, one category. */
export interface Holding {
  readonly stack: number
  readonly category: Category
  readonly bytes: number
  readonly blocks: number
  readonly origin: Origin
}

export interface Share {
  readonly name: string
  readonly bytes: number
  readonly blocks: number
  /** Of all that was in use. */
  readonly ratio: number
}

/** After the event `index`; -1: before the first. */
export function liveAt(lifetimes: Lifetimes, categories: Categories, selection: Selection, index: number): Holding[] {
  const { trace, early } = lifetimes
  const found = new Map<string, { -readonly [Key in keyof Holding]: Holding[Key] }>()
  const add = (stack: number, category: Category, bytes: number, origin: Origin) => {
    const key = `${stack} ${category} ${origin}`
    const one = found.get(key)
    if (one === undefined) found.set(key, { stack, category, bytes, blocks: 1, origin })
    else {
      one.bytes += bytes
      one.blocks++
    }
  }
  for (let i = 0; i < early.sizes.length; i++) {
    if ((early.freedAt[i] as number) > index && selection.hasEarly(lifetimes, i))
      add(early.stacks[i] as number, categories.ofEarly(i), early.sizes[i] as number, originOfEarly(lifetimes, i))
  }
  for (let i = 0; i <= index; i++)
    if (trace.action(i) === ACTION.alloc && trace.address(i) >= 0 && lifetimes.endOf(i) > index && selection.hasAlloc(i))
      add(trace.stack(i), categories.ofAlloc(i), trace.size(i), 'window')
  return [...found.values()].sort((a, b) => b.bytes - a.bytes)
}

export function originOfEarly({ trace, early, freesRepeatStacks }: Lifetimes, block: number): Origin {
  return (early.freedAt[block] as number) < trace.count && !freesRepeatStacks ? 'freed' : 'before'
}

/** Largest first; equal names are one. */
export function sharesBy(holdings: readonly Holding[], nameOf: (holding: Holding) => string): Share[] {
  const total = holdings.reduce((sum, { bytes }) => sum + bytes, 0)
  const sums = new Map<string, { bytes: number; blocks: number }>()
  for (const holding of holdings) {
    const name = nameOf(holding)
    const sum = sums.get(name) ?? { bytes: 0, blocks: 0 }
    sums.set(name, { bytes: sum.bytes + holding.bytes, blocks: sum.blocks + holding.blocks })
  }
  return [...sums]
    .map(([name, sum]) => ({ name, ...sum, ratio: total > 0 ? sum.bytes / total : 0 }))
    .sort((a, b) => b.bytes - a.bytes || a.name.localeCompare(b.name))
}

/** What the line of a holding is called: that of the person's own code, or the best that is known. */
export function lineOf({ stack, origin }: Pick<Holding, 'stack' | 'origin'>, words: StackWordsTable): string {
  if (origin === 'freed') return '(made before the window)'
  if (stack === NO_STACK || stack === EMPTY_STACK) return origin === 'before' ? '(no stack recorded)' : '(no Python frames)'
  return words.of(stack).label
}

export function byLine(holdings: readonly Holding[], words: StackWordsTable): Share[] {
  return sharesBy(holdings, (holding) => lineOf(holding, words))
}

/** All of them, in their fixed order. */
export function byCategory(holdings: readonly Holding[]): Share[] {
  const shares = sharesBy(holdings, ({ category }) => category)
  return CATEGORIES.map((name) => shares.find((share) => share.name === name) ?? { name, bytes: 0, blocks: 0, ratio: 0 })
}

/** By chain of modules, of what was made in a `forward`. */
export function byModule(holdings: readonly Holding[], words: StackWordsTable): Share[] {
  const total = holdings.reduce((sum, { bytes }) => sum + bytes, 0)
  const inModules = holdings.filter(({ stack, origin }) => origin !== 'freed' && words.of(stack).module !== null)
  return sharesBy(inModules, ({ stack }) => words.of(stack).module ?? '').map((share) => ({
    ...share,
    ratio: total > 0 ? share.bytes / total : 0,
  }))
}
