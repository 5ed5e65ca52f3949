/**
 * Two snapshots side by side, by folded stack: addresses mean nothing from one process to the next. The category is shown and not
 * compared: a file that lost its start knows less about the same memory.
 */
import type { Category } from './categories.ts'
import type { DeviceAnalysis } from './device-analysis.ts'
import { byCategory, type Holding, lineOf } from './live-set.ts'
import type { StackWordsTable } from './stack-words.ts'

export interface Amount {
  readonly bytes: number
  readonly blocks: number
}

export interface StackChange {
  readonly change: 'new' | 'gone' | 'grown' | 'shrunk'
  readonly line: string
  readonly category: Category
  /** Outermost first; of the second file where it is in both. */
  readonly stack: readonly string[]
  readonly before: Amount
  readonly after: Amount
  readonly deltaBytes: number
}

export interface Diff {
  readonly beforeBytes: number
  readonly afterBytes: number
  readonly deltaBytes: number
  /** Largest change first; equal ones are left out. */
  readonly stacks: readonly StackChange[]
  readonly categories: readonly { readonly name: string; readonly beforeBytes: number; readonly afterBytes: number }[]
}

interface Entry extends Amount {
  readonly key: string
  /** Without line numbers. */
  readonly looseKey: string
  readonly lines: readonly number[]
  readonly line: string
  readonly category: Category
  readonly stack: readonly string[]
}

const NOTHING: Amount = { bytes: 0, blocks: 0 }

/** What was in use after event `at` of each. */
export function diffOf(before: DeviceAnalysis, beforeAt: number, after: DeviceAnalysis, afterAt: number): Diff {
  const [held, holds] = [before.liveAt(beforeAt), after.liveAt(afterAt)]
  const [old, young] = [entriesOf(held, before.words), entriesOf(holds, after.words)]
  const stacks: StackChange[] = []
  const pair = (was: Entry | null, is: Entry | null) => {
    const entry = is ?? was
    if (entry === null || (was?.bytes ?? 0) === (is?.bytes ?? 0)) return
    const [from, to] = [amountOf(was), amountOf(is)]
    const change = was === null ? 'new' : is === null ? 'gone' : to.bytes > from.bytes ? 'grown' : 'shrunk'
    const { line, category, stack } = entry
    stacks.push({ change, line, category, stack, before: from, after: to, deltaBytes: to.bytes - from.bytes })
  }
  for (const [key, is] of young) {
    const was = old.get(key)
    if (was === undefined) continue
    pair(was, is)
    old.delete(key)
    young.delete(key)
  }
  // Edited code: the same functions, other lines.
  const alike = new Map<string, Entry[]>()
  for (const was of old.values()) alike.set(was.looseKey, [...(alike.get(was.looseKey) ?? []), was])
  for (const is of young.values()) {
    const [nearest] = (alike.get(is.looseKey) ?? []).filter(({ key }) => old.has(key)).sort((a, b) => distance(a, is) - distance(b, is))
    pair(nearest ?? null, is)
    if (nearest) old.delete(nearest.key)
  }
  for (const was of old.values()) pair(was, null)
  const [beforeBytes, afterBytes] = [total(held), total(holds)]
  const [oldCategories, newCategories] = [byCategory(held), byCategory(holds)]
  return {
    beforeBytes,
    afterBytes,
    deltaBytes: afterBytes - beforeBytes,
    stacks: stacks.sort((a, b) => Math.abs(b.deltaBytes) - Math.abs(a.deltaBytes)),
    categories: oldCategories.map(({ name, bytes }, i) => ({ name, beforeBytes: bytes, afterBytes: newCategories[i]?.bytes ?? 0 })),
  }
}

function entriesOf(holdings: readonly Holding[], words: StackWordsTable): Map<string, Entry> {
  const entries = new Map<string, Entry>()
  for (const holding of holdings) {
    const { category, bytes, blocks } = holding
    const line = lineOf(holding, words)
    const stack = holding.origin === 'freed' ? [line] : words.of(holding.stack).folded
    const key = stack.join('\n')
    const known = entries.get(key)
    entries.set(key, {
      key,
      looseKey: key.replace(/:\d+\)/g, ')'),
      lines: [...key.matchAll(/:(\d+)\)/g)].map((found) => Number(found[1])),
      line,
      category: known?.category ?? category,
      stack,
      bytes: bytes + (known?.bytes ?? 0),
      blocks: blocks + (known?.blocks ?? 0),
    })
  }
  return entries
}

function distance(a: Entry, b: Entry): number {
  return a.lines.reduce((sum, line, i) => sum + Math.abs(line - (b.lines[i] ?? line)), 0)
}

function amountOf(entry: Entry | null): Amount {
  return entry === null ? NOTHING : { bytes: entry.bytes, blocks: entry.blocks }
}

function total(holdings: readonly Holding[]): number {
  return holdings.reduce((sum, { bytes }) => sum + bytes, 0)
}
