/** How often the driver refused a segment, so that the allocator gave its cache back and tried again. */
import { ACTION } from '../read/keys.ts'
import type { StackWordsTable } from './stack-words.ts'
import { countUpTo, type Steps } from './steps.ts'
import type { Trace } from './trace.ts'

export interface Retry {
  /** The segment_alloc that succeeded then, or the oom. */
  readonly eventIndex: number
  readonly timeUs: number | null
  readonly segments: number
  readonly bytes: number
  readonly isOutOfMemory: boolean
}

export interface Retries {
  readonly count: number
  readonly bytes: number
  readonly steps: number
  /** In at least half of the steps, more than three of them. */
  readonly isThrashing: boolean
  readonly list: readonly Retry[]
}

const MOST_LISTED = 100

export function retriesOf(trace: Trace, steps: Steps, words: StackWordsTable): Retries {
  const list: Retry[] = []
  const inSteps = new Set<number>()
  let [count, bytes, segments, freed] = [0, 0, 0, 0]
  for (let i = 0; i < trace.count; i++) {
    const action = trace.action(i)
    if (action === ACTION.segment_free && !isAskedFor(trace.stack(i), words)) {
      segments++
      freed += trace.size(i)
      continue
    }
    // Before an oom it has always tried, even where nothing was left to give back.
    if (action === ACTION.oom || (segments > 0 && action === ACTION.segment_alloc)) {
      count++
      bytes += freed
      inSteps.add(countUpTo(steps.ends, i))
      if (list.length < MOST_LISTED)
        list.push({ eventIndex: i, timeUs: trace.time(i), segments, bytes: freed, isOutOfMemory: action === ACTION.oom })
    }
    segments = 0
    freed = 0
  }
  const isThrashing = inSteps.size > 3 && inSteps.size * 2 >= steps.ends.length
  return { count, bytes, steps: inSteps.size, isThrashing, list }
}

/** `torch.cuda.empty_cache()` frees segments too. */
function isAskedFor(stack: number, words: StackWordsTable): boolean {
  return words.framesOf(stack).some(({ name }) => /\bempty_?cache\b|emptyCache/i.test(name))
}
