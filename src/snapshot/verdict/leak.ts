/** Which lines keep what every step makes. A cache that fills once, a buffer that comes and goes and the outputs of the last step are not leaks. */
import { ACTION } from '../read/keys.ts'
import { type Lifetimes, NONE } from './lifetimes.ts'
import type { StackWordsTable } from './stack-words.ts'
import { countUpTo, type Steps } from './steps.ts'

export interface LeakCandidate {
  /** Of the person's own code, or the best that is known. */
  readonly line: string
  /** Folded, outermost first: the stack with the largest part of it. */
  readonly stack: readonly string[]
  readonly bytesPerStep: number
  /** Null where the file has no times. */
  readonly bytesPerSecond: number | null
  /** What it grew by after warm-up. */
  readonly grownBytes: number
  /** What it holds at the end, with what it made before the window. */
  readonly heldBytes: number
  /** What of the window's allocations is alive at the end. */
  readonly survivingBytes: number
  readonly survivingBlocks: number
  /** Ages in steps. */
  readonly survivors: { readonly medianSteps: number; readonly oldestSteps: number }
  /** Of those that were freed; null: none was. */
  readonly freedMedianSteps: number | null
  /** How many survivors are 0, 1, 2–3, 4–7, 8–15, … steps old. */
  readonly agesByPowerOfTwo: readonly number[]
}

export interface LeakVerdict {
  /** Not known: there are no events, or frees were not recorded. */
  readonly answer: 'leak' | 'no leak' | 'window too short for a verdict' | 'not known'
  /** Steps, or parts of the window, that were compared. */
  readonly marks: number
  readonly steps: Steps
  /** Largest first. */
  readonly candidates: readonly LeakCandidate[]
}

const LEAST_MARKS = 6
const WINDOWS = 3
const MOST_CANDIDATES = 20
/** A number kept each step is not worth a word. */
const LEAST_BYTES_PER_STEP = 512

/** Live bytes at the borders of the windows, and what of each window is still alive at the end. */
interface Growth {
  readonly levels: Float64Array
  readonly survivors: Float64Array
  readonly stacks: Map<number, number>
}

export function leakVerdict(lifetimes: Lifetimes, steps: Steps, words: StackWordsTable): LeakVerdict {
  const { ends } = steps
  const judged = { marks: ends.length, steps }
  if (lifetimes.endAction === NONE) return { ...judged, answer: 'not known', candidates: [] }
  if (ends.length < LEAST_MARKS) return { ...judged, answer: 'window too short for a verdict', candidates: [] }
  const borders = bordersOf(ends)
  const growths = growthsByStack(lifetimes, ends, borders)
  const byLine = new Map<string, Growth>()
  for (const [stack, growth] of growths) add(byLine, words.of(stack).label, growth)
  // Among the stacks of a line some may leak while others come and go; a leak may also be spread over stacks of which none leaks alone.
  const leaking = new Map<string, Growth>()
  for (const [line, growth] of byLine) {
    const alone = [...growth.stacks.keys()].map((stack) => growths.get(stack) as Growth).filter(isLeak)
    for (const one of alone) add(leaking, line, one)
    if (alone.length === 0 && isLeak(growth)) leaking.set(line, growth)
  }
  const candidates = [...leaking]
    .map(([line, growth]) => describe(line, growth, lifetimes, steps, words, borders))
    .filter(({ bytesPerStep }) => bytesPerStep >= LEAST_BYTES_PER_STEP)
    .sort((a, b) => b.bytesPerStep - a.bytesPerStep)
    .slice(0, MOST_CANDIDATES)
  return { ...judged, answer: candidates.length > 0 ? 'leak' : 'no leak', candidates }
}

/** The first third is warm-up; the rest is cut into windows. Indexes of marks. */
function bordersOf(ends: readonly number[]): number[] {
  const first = Math.floor(ends.length / 3)
  const last = ends.length - 1
  return Array.from({ length: WINDOWS + 1 }, (_, i) => Math.round(first + ((last - first) * i) / WINDOWS))
}

function growthsByStack(lifetimes: Lifetimes, ends: readonly number[], borders: readonly number[]): Map<number, Growth> {
  const { trace, early } = lifetimes
  const growths = new Map<number, Growth>()
  const of = (stack: number): Growth => {
    let growth = growths.get(stack)
    if (growth === undefined) {
      growth = { levels: new Float64Array(WINDOWS + 1), survivors: new Float64Array(WINDOWS), stacks: new Map([[stack, 0]]) }
      growths.set(stack, growth)
    }
    return growth
  }
  const places = borders.map((mark) => ends[mark] as number)
  const live = (growth: Growth, from: number, to: number, size: number) => {
    // What lives through no border changes no level.
    for (let i = 0; i < places.length; i++) {
      const place = places[i] as number
      if (from < place && to >= place) growth.levels[i] = (growth.levels[i] as number) + size
    }
  }
  for (let i = 0; i < early.sizes.length; i++) live(of(early.stacks[i] as number), -1, early.freedAt[i] as number, early.sizes[i] as number)
  const [first, last] = [places[0] as number, places[WINDOWS] as number]
  for (let i = 0; i < trace.count; i++) {
    if (trace.action(i) !== ACTION.alloc || trace.address(i) < 0) continue
    // What waits for a stream is let go of.
    const end = lifetimes.waiting.get(i) ?? lifetimes.endOf(i)
    if (end < first) continue
    const size = trace.size(i)
    live(of(trace.stack(i)), i, end, size)
    if (end < trace.count || i < first || i >= last) continue
    const growth = of(trace.stack(i))
    const window = places.findIndex((place) => i < place) - 1
    growth.survivors[window] = (growth.survivors[window] as number) + size
    growth.stacks.set(trace.stack(i), (growth.stacks.get(trace.stack(i)) ?? 0) + size)
  }
  return growths
}

/** It grew in every window, and of every window something is still there, enough of it to be the growth. */
function isLeak({ levels, survivors }: Growth): boolean {
  const grown = (levels[WINDOWS] as number) - (levels[0] as number)
  const hasGrown = survivors.every((_, i) => (levels[i + 1] as number) > (levels[i] as number))
  const kept = survivors.reduce((sum, bytes) => sum + bytes, 0)
  return hasGrown && survivors.every((bytes) => bytes > 0) && kept >= grown / 2
}

function add(sums: Map<string, Growth>, name: string, growth: Growth): void {
  const sum = sums.get(name)
  if (sum === undefined) {
    sums.set(name, { levels: growth.levels.slice(), survivors: growth.survivors.slice(), stacks: new Map(growth.stacks) })
    return
  }
  for (const [i, bytes] of growth.levels.entries()) sum.levels[i] = (sum.levels[i] as number) + bytes
  for (const [i, bytes] of growth.survivors.entries()) sum.survivors[i] = (sum.survivors[i] as number) + bytes
  for (const [stack, bytes] of growth.stacks) sum.stacks.set(stack, bytes)
}

function describe(
  line: string,
  { levels, stacks }: Growth,
  lifetimes: Lifetimes,
  steps: Steps,
  words: StackWordsTable,
  borders: readonly number[],
): LeakCandidate {
  const { trace, early } = lifetimes
  const { ends } = steps
  const grownBytes = (levels[WINDOWS] as number) - (levels[0] as number)
  const marks = (borders[WINDOWS] as number) - (borders[0] as number)
  const [largest] = [...stacks].sort(([, a], [, b]) => b - a)
  const ages: number[] = []
  const freed: number[] = []
  let survivingBytes = 0
  let earlyBytes = 0
  for (const [i, size] of early.sizes.entries())
    if (early.freedAt[i] === trace.count && stacks.has(early.stacks[i] as number)) earlyBytes += size
  for (let i = 0; i < trace.count; i++) {
    if (trace.action(i) !== ACTION.alloc || !stacks.has(trace.stack(i))) continue
    const end = lifetimes.waiting.get(i) ?? lifetimes.endOf(i)
    const age = countUpTo(ends, end) - countUpTo(ends, i)
    if (end === trace.count) {
      ages.push(age)
      survivingBytes += trace.size(i)
    } else freed.push(age)
  }
  ages.sort((a, b) => a - b)
  freed.sort((a, b) => a - b)
  const seconds = secondsBetween(lifetimes, ends[borders[0] as number] as number, ends[borders[WINDOWS] as number] as number)
  return {
    line,
    stack: words.of((largest as [number, number])[0]).folded,
    bytesPerStep: grownBytes / marks,
    bytesPerSecond: seconds === null || seconds <= 0 ? null : grownBytes / seconds,
    grownBytes,
    heldBytes: earlyBytes + survivingBytes,
    survivingBytes,
    survivingBlocks: ages.length,
    survivors: { medianSteps: ages[ages.length >> 1] ?? 0, oldestSteps: ages.at(-1) ?? 0 },
    freedMedianSteps: freed[freed.length >> 1] ?? null,
    agesByPowerOfTwo: byPowerOfTwo(ages),
  }
}

function secondsBetween({ trace }: Lifetimes, from: number, to: number): number | null {
  const [begun, ended] = [trace.time(Math.min(from, trace.count - 1)), trace.time(Math.min(to, trace.count - 1))]
  return begun === null || ended === null ? null : (ended - begun) / 1e6
}

function byPowerOfTwo(ages: readonly number[]): number[] {
  const counts: number[] = []
  for (const age of ages) {
    const bucket = age < 1 ? 0 : Math.floor(Math.log2(age)) + 1
    while (counts.length <= bucket) counts.push(0)
    counts[bucket] = (counts[bucket] as number) + 1
  }
  return counts
}
