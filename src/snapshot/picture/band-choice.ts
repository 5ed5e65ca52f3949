/** Which groups get a band of their own, and which stacks are behind each: by the most that they ever had in use. */
import type { Band } from '../../core/memory/snapshot-picture.ts'
import { ACTION } from '../read/keys.ts'
import { type Lifetimes, NONE } from '../verdict/lifetimes.ts'
import { originOfEarly } from '../verdict/live-set.ts'
import type { Selection } from '../verdict/selection.ts'
import type { StackWordsTable } from '../verdict/stack-words.ts'
import type { Grouping } from './grouping.ts'

/** Beside the one for all others. */
const MOST_BANDS = 15
const MOST_STACKS = 4
const MOST_FRAMES = 60
const OTHERS = 'all other'

export interface BandChoice {
  readonly bands: readonly Band[]
  readonly bandOf: (group: number) => number
}

/** Live bytes by key, the most of each, and their sum over all events. */
class Peaks {
  readonly #slots = new Map<number, number>()
  readonly keys: number[] = []
  readonly #live: number[] = []
  readonly #since: number[] = []
  readonly most: number[] = []
  readonly sums: number[] = []

  add(key: number, bytes: number, index: number): void {
    let slot = this.#slots.get(key)
    if (slot === undefined) {
      slot = this.keys.push(key) - 1
      this.#slots.set(key, slot)
      for (const list of [this.#live, this.#since, this.most, this.sums]) list.push(0)
    }
    const before = this.#live[slot] as number
    this.sums[slot] = (this.sums[slot] as number) + before * (index - (this.#since[slot] as number))
    this.#since[slot] = index
    const now = before + bytes
    this.#live[slot] = now
    if (now > (this.most[slot] as number)) this.most[slot] = now
  }

  end(index: number): void {
    for (const key of this.keys) this.add(key, 0, index)
  }
}

/** A stack of a group as one number; stacks are fewer than 2^21. */
const GROUP = 2 ** 21

export function chooseBands(lifetimes: Lifetimes, selection: Selection, grouping: Grouping, words: StackWordsTable): BandChoice {
  const { trace, early, partners, replaced, endAction } = lifetimes
  const groups = new Peaks()
  const stacks = new Peaks()
  let now = 0
  const add = (group: number, stack: number, bytes: number) => {
    groups.add(group, bytes, now)
    stacks.add(group * GROUP + stack, bytes, now)
  }
  // Stack 0 is "none recorded": of those that were freed in the window only the stack of the free is known.
  const earlyStack = (block: number) => (originOfEarly(lifetimes, block) === 'freed' ? 0 : (early.stacks[block] as number))
  const takeEarly = (block: number, sign: number) => {
    if (selection.hasEarly(lifetimes, block)) add(grouping.ofEarly(block), earlyStack(block), sign * (early.sizes[block] as number))
  }
  const takeAlloc = (index: number, sign: number) => {
    if (trace.address(index) >= 0 && selection.hasAlloc(index)) add(grouping.ofAlloc(index), trace.stack(index), sign * trace.size(index))
  }
  for (let block = 0; block < early.sizes.length; block++) takeEarly(block, 1)
  for (let i = 0; i < trace.count; i++) {
    const action = trace.action(i)
    now = i
    if (action === ACTION.alloc) {
      const before = replaced.get(i)
      if (before !== undefined) takeAlloc(before, -1)
      takeAlloc(i, 1)
    } else if (action === endAction) {
      const partner = partners[i] as number
      if (partner >= 0) takeAlloc(partner, -1)
      else if (partner !== NONE) takeEarly(-2 - partner, -1)
    }
  }
  groups.end(trace.count)
  return bandsFrom(groups, stacks, grouping.names, words)
}

function bandsFrom(groups: Peaks, stacks: Peaks, names: readonly string[], words: StackWordsTable): BandChoice {
  const order = groups.keys
    .map((group, slot) => ({ group, most: groups.most[slot] as number, sum: groups.sums[slot] as number }))
    .sort((a, b) => b.most - a.most)
  // What is steady lies below what comes and goes: then both can be seen.
  const chosen = order
    .filter(({ most }) => most > 0)
    .slice(0, MOST_BANDS)
    .sort((a, b) => b.sum / b.most - a.sum / a.most)
  const positions = new Map(chosen.map(({ group }, band) => [group, band]))
  const others = chosen.length
  const bandOf = (group: number) => positions.get(group) ?? others
  const behind: { bytes: number; stack: number }[][] = Array.from({ length: others + 1 }, () => [])
  for (const [slot, key] of stacks.keys.entries())
    behind[bandOf(Math.floor(key / GROUP))]?.push({ bytes: stacks.most[slot] as number, stack: key % GROUP })
  const band = (name: string, mostBytes: number, position: number): Band => ({
    name,
    mostBytes,
    stacks: (behind[position] ?? [])
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, MOST_STACKS)
      .map(({ bytes, stack }) => ({ bytes, frames: words.of(stack).folded.slice(-MOST_FRAMES) })),
  })
  const bands = chosen.map(({ group, most }, position) => band(names[group] as string, most, position))
  // What all others had together is known when the levels are.
  return { bands: [...bands, band(OTHERS, 0, others)], bandOf }
}
