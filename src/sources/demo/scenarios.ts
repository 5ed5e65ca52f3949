/** The problems that can be simulated, when they begin, and which GPU has which. */

export const DEMO_SCENARIOS = ['healthy', 'leak', 'oom', 'intruder', 'overheat', 'stall', 'lost', 'all'] as const
export type DemoScenario = (typeof DEMO_SCENARIOS)[number]
export type Trouble = Exclude<DemoScenario, 'all'>

/** Seconds after the first tick at which a problem begins. */
export const TROUBLE_AT = { leak: 10, oom: 0, intruder: 20, overheat: 20, stall: 25, lost: 25 } as const

/** How long the memory of a leaking job takes to fill, in seconds: fast enough that the leak is found within a minute of the start. */
export const FILL_SECONDS = { leak: 120, oom: 90 } as const

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
  const gpus = given.demoGpus ?? (scenario === 'all' ? SPREAD.length : 2)
  if (!Number.isInteger(gpus) || gpus < 1 || gpus > MAX_GPUS)
    throw new Error(`demoGpus must be a whole number from 1 to ${MAX_GPUS}; got ${String(gpus)}`)
  const seed = given.seed ?? 1
  if (!Number.isSafeInteger(seed)) throw new Error(`seed must be a whole number; got ${String(seed)}`)
  return { scenario, gpus, seed }
}

export function troubleOf({ scenario, gpus }: DemoOptions, gpu: number): Trouble {
  if (scenario === 'all') return SPREAD[gpu] ?? 'healthy'
  const troubled = scenario === 'lost' ? Math.min(1, gpus - 1) : 0
  return gpu === troubled ? scenario : 'healthy'
}
