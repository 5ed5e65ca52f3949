/** Where training steps end in the events: by what the file is annotated with, by what repeats, or not at all. */
import { ACTION } from '../read/keys.ts'
import type { Snapshot } from '../read/read-snapshot.ts'
import type { Device } from './device.ts'
import type { Trace } from './trace.ts'

export interface Steps {
  readonly source: 'annotations' | 'repetition' | 'equal parts'
  /** What marks a step. */
  readonly name: string | null
  /** Indexes of the first event after each step, rising. */
  readonly ends: readonly number[]
  /** Where a step of the optimizer begins: gradients are alive there. Empty where that is not known. */
  readonly starts: readonly number[]
  /** Of a step, from the times of the marks. */
  readonly medianSeconds: number | null
}

const EQUAL_PARTS = 20
const LEAST_REPEATS = 6
/** Standard deviation of the distance between repeats, as a share of it. */
const MOST_SPREAD = 0.1
const LEAST_COVER = 0.6

export function stepsOf(snapshot: Snapshot, device: Device): Steps {
  return annotatedSteps(snapshot, device) ?? repeatedSteps(device.trace) ?? equalParts(device.trace)
}

function annotatedSteps({ tables, layout }: Snapshot, { trace, index }: Device): Steps | null {
  const { first, count } = layout.annotations
  const [begun, ended] = [trace.time(0), trace.time(trace.count - 1)]
  if (begun === null || ended === null) return null
  const inWindow = tables.annotations
    .slice(first, first + count)
    .filter(({ device, time }) => device === index && time >= begun && time <= ended)
  // `ProfilerStep#12` has a name of its own in every step.
  const names = new Map([...new Set(inWindow.map(({ name }) => name))].map((id) => [id, tables.texts.text(id).replace(/#\d+$/, '')]))
  const kinds = [...new Set(names.values())].filter((name) => /step/i.test(name))
  // Several marks may say "step": the optimizer's is at the end of one, the profiler's is all of it.
  const chosen = kinds.find((name) => /^Optimizer\.step/.test(name)) ?? kinds.find((name) => /^ProfilerStep/.test(name)) ?? kinds[0]
  if (chosen === undefined) return null
  const marks = inWindow.filter(({ name }) => names.get(name) === chosen)
  const times = marks.filter(({ isStart }) => !isStart).map(({ time }) => time)
  return {
    source: 'annotations',
    name: chosen,
    ends: times.map((time) => trace.indexAfter(time)),
    starts: /optim/i.test(chosen) ? marks.filter(({ isStart }) => isStart).map(({ time }) => trace.indexAfter(time)) : [],
    medianSeconds: medianGap(times),
  }
}

/** A stack that allocates once per step, at even distances. */
function repeatedSteps(trace: Trace): Steps | null {
  const seen = new Map<number, { count: number; first: number; last: number; sum: number; squares: number }>()
  let allocs = 0
  for (let i = 0; i < trace.count; i++) {
    if (trace.action(i) !== ACTION.alloc) continue
    const stack = trace.stack(i)
    const one = seen.get(stack)
    if (one === undefined) seen.set(stack, { count: 1, first: allocs, last: allocs, sum: 0, squares: 0 })
    else {
      const gap = allocs - one.last
      one.count++
      one.last = allocs
      one.sum += gap
      one.squares += gap * gap
    }
    allocs++
  }
  const spread = ({ count, sum, squares }: { count: number; sum: number; squares: number }) => {
    const mean = sum / (count - 1)
    return Math.sqrt(Math.max(0, squares / (count - 1) - mean * mean)) / mean
  }
  const regular = [...seen].filter(
    ([, one]) =>
      one.count >= LEAST_REPEATS && one.last - one.first >= LEAST_COVER * allocs && one.sum > 2 * one.count && spread(one) <= MOST_SPREAD,
  )
  const [best] = regular.sort(([, a], [, b]) => spread(a) - spread(b) || b.count - a.count)
  if (best === undefined) return null
  const ends: number[] = []
  for (let i = 0; i < trace.count; i++) if (trace.action(i) === ACTION.alloc && trace.stack(i) === best[0]) ends.push(i)
  return { source: 'repetition', name: null, ends, starts: [], medianSeconds: medianGap(ends.map((end) => trace.time(end) ?? Number.NaN)) }
}

function equalParts(trace: Trace): Steps {
  const ends =
    trace.count < EQUAL_PARTS ? [] : Array.from({ length: EQUAL_PARTS }, (_, i) => Math.floor(((i + 1) * trace.count) / EQUAL_PARTS))
  return { source: 'equal parts', name: null, ends, starts: [], medianSeconds: null }
}

function medianGap(times: readonly number[]): number | null {
  const gaps = times.slice(1).map((time, i) => time - (times[i] as number))
  const sorted = gaps.filter((gap) => !Number.isNaN(gap)).sort((a, b) => a - b)
  const middle = sorted[sorted.length >> 1]
  return middle === undefined ? null : middle / 1e6
}

/** How many of these indexes are at or before `index`. */
export function countUpTo(indexes: readonly number[], index: number): number {
  let [low, high] = [0, indexes.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((indexes[middle] as number) <= index) low = middle + 1
    else high = middle
  }
  return low
}
