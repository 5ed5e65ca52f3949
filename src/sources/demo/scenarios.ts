/** The problems that can be simulated, when they begin, and which GPU has which. */

export const DEMO_SCENARIOS = [
  'story',
  'idle',
  'healthy',
  'leak',
  'oom',
  'intruder',
  'overheat',
  'stall',
  'straggler',
  'lost',
  'all',
] as const
export type DemoScenario = (typeof DEMO_SCENARIOS)[number]
export type Trouble = Exclude<DemoScenario, 'story' | 'all'>

/** In seconds after the first tick. It comes back in the next job, `everySeconds` later. */
export interface Episode {
  readonly from: number
  /** Infinity: it stays. Memory that leaks is full after this time. */
  readonly lasts: number
  /** Infinity: it does not come back. */
  readonly everySeconds: number
}

type Episodes = Readonly<Partial<Record<Trouble, Episode>>>

const staysFrom = (from: number): Episode => ({ from, lasts: Number.POSITIVE_INFINITY, everySeconds: Number.POSITIVE_INFINITY })

/** One problem, ordered by its name. A leak is fast enough to be found within a minute of the start. */
const ALONE: Episodes = {
  leak: { from: 10, lasts: 120, everySeconds: 194 },
  oom: { from: 0, lasts: 90, everySeconds: 158 },
  intruder: staysFrom(20),
  overheat: staysFrom(20),
  stall: staysFrom(25),
  straggler: staysFrom(25),
  lost: staysFrom(25),
}

/** Everything within two minutes, and again after half an hour, but no longer all at once. */
const STORY: Episodes = {
  leak: { from: 4, lasts: 86, everySeconds: 1680 },
  overheat: { from: 12, lasts: 240, everySeconds: 2040 },
  intruder: { from: 32, lasts: 210, everySeconds: 2460 },
  straggler: { from: 48, lasts: 180, everySeconds: 2880 },
}

const STORY_GPUS: readonly Trouble[] = ['leak', 'healthy', 'intruder', 'overheat', 'straggler', 'straggler', 'straggler', 'straggler']
const SPREAD: readonly Trouble[] = ['leak', 'oom', 'intruder', 'overheat', 'stall', 'lost']
const MAX_GPUS = 64

export interface DemoOptions {
  readonly scenario: DemoScenario
  readonly gpus: number
  readonly seed: number
}

/** Throws with the option's name and what it may be. */
export function demoOptions(given: { readonly demoGpus?: number; readonly demoScenario?: string; readonly seed?: number }): DemoOptions {
  const scenario = DEMO_SCENARIOS.find((name) => name === (given.demoScenario ?? 'healthy'))
  if (scenario === undefined)
    throw new Error(`demoScenario must be one of ${DEMO_SCENARIOS.join(', ')}; got ${JSON.stringify(given.demoScenario)}`)
  const gpus = given.demoGpus ?? usualGpus(scenario)
  if (!Number.isInteger(gpus) || gpus < 1 || gpus > MAX_GPUS)
    throw new Error(`demoGpus must be a whole number from 1 to ${MAX_GPUS}; got ${String(gpus)}`)
  const seed = given.seed ?? 1
  if (!Number.isSafeInteger(seed)) throw new Error(`seed must be a whole number; got ${String(seed)}`)
  return { scenario, gpus, seed }
}

function usualGpus(scenario: DemoScenario): number {
  if (scenario === 'story') return STORY_GPUS.length
  if (scenario === 'all') return SPREAD.length
  return scenario === 'straggler' ? 4 : 2
}

export function troubleOf({ scenario, gpus }: DemoOptions, gpu: number): Trouble {
  if (scenario === 'story') return STORY_GPUS[gpu] ?? 'healthy'
  if (scenario === 'all') return SPREAD[gpu] ?? 'healthy'
  if (scenario === 'straggler' || scenario === 'idle') return scenario
  const troubled = scenario === 'lost' ? Math.min(1, gpus - 1) : 0
  return gpu === troubled ? scenario : 'healthy'
}

/** null: nothing happens. */
export function episodeOf({ scenario }: DemoOptions, trouble: Trouble): Episode | null {
  return (scenario === 'story' ? STORY : ALONE)[trouble] ?? null
}

/** The GPUs of one run that trains on several of them, in the order of its ranks. */
export function gpusOfRun(options: DemoOptions, gpu: number): readonly number[] {
  if (troubleOf(options, gpu) !== 'straggler') return [gpu]
  return Array.from({ length: options.gpus }, (_, index) => index).filter((index) => troubleOf(options, index) === 'straggler')
}
