/** A newcomer who orders a trouble sees it found within a minute, and sees nothing where all is well. */
import { describe, expect, it } from 'vitest'
import { Hub } from '../src/agent/hub.ts'
import { SILENT_LOG } from '../src/agent/one-look.ts'
import { State } from '../src/agent/state.ts'
import type { HubEvent, SelfUsage } from '../src/core/kinds.ts'
import type { Finding } from '../src/core/model.ts'
import { createEngine } from '../src/detectors/engine.ts'
import { detectors } from '../src/detectors/index.ts'
import { demo } from '../src/sources/demo/index.ts'
import { sourceEnv } from '../src/sources/source.contract.ts'

const START = 1_760_000_000_000
const SELF: SelfUsage = { version: '0', startedAt: START, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]

interface Play {
  readonly scenario: string
  readonly seconds: number
  readonly seed?: number
  readonly interval?: number
  /** Nobody reports training steps. */
  readonly isGpuAlone?: boolean
}

/** What the detectors say of a scenario, in the order in which they say it. */
async function findings({ scenario, seconds, seed = 1, interval = 1, isGpuAlone = false }: Play): Promise<Finding[]> {
  const source = await demo.open(sourceEnv({ options: { demoScenario: scenario, seed } }))
  if (source === null) throw new Error('the demo is always there')
  let at = START
  const state = new State({ now: () => at, health: () => [], sinks: () => [], self: () => SELF, devices: null })
  const hub = new Hub({ state, log: SILENT_LOG, onProcesses: () => undefined })
  const engine = createEngine({ kinds: detectors, hostname: 'host' })
  const found: Finding[] = []
  hub.addSink({
    name: 'detectors',
    accept: (event: HubEvent) => void found.push(...engine.accept(event)),
  })
  hub.receiveDevices('demo', source.devices())
  for (let tick = 0; tick * interval <= seconds; tick++) {
    at = START + Math.round(tick * interval * 1000)
    const all = await source.read({ at, monotonicMs: at - START, tick })
    const samples = isGpuAlone ? all.filter((sample) => sample.kind !== 'step') : all
    hub.receive({ source: 'demo', provenance: 'simulated', at, samples })
  }
  return found
}

const named = (found: readonly Finding[]) => new Set(found.map((one) => one.detector))
const words = (found: readonly Finding[]) => found.map((one) => `${(one.at - START) / 1000} s ${one.severity} ${one.message}`)

describe('each trouble is found within a minute', () => {
  const EXPECTED: readonly [string, readonly string[]][] = [
    ['leak', ['leak']],
    ['oom', ['oom']],
    ['intruder', ['intruder']],
    ['overheat', ['thermal']],
    ['stall', ['stall']],
    ['lost', ['gpu_lost', 'xid']],
    ['all', ['leak', 'oom', 'intruder', 'thermal', 'stall', 'gpu_lost', 'xid']],
  ]
  it.each(EXPECTED)('%s', async (scenario, detectorNames) => {
    for (const seed of SEEDS)
      expect([...named(await findings({ scenario, seconds: 60, seed }))], `seed ${seed}`).toEqual(
        expect.arrayContaining([...detectorNames]),
      )
  })
})

describe('where all is well nothing is said', () => {
  it.each([0.1, 0.5, 1, 5, 10, 60])('looking every %d s', async (interval) => {
    expect(words(await findings({ scenario: 'healthy', seconds: 600, interval }))).toEqual([])
  })

  it('whatever the seed', async () => {
    for (const seed of SEEDS) expect(words(await findings({ scenario: 'healthy', seconds: 600, seed })), `seed ${seed}`).toEqual([])
  })

  describe.each([
    ['with training steps', false],
    ['from the GPU alone', true],
  ])('nor is anybody warned in fifty minutes of evaluations, checkpoints and jobs that come and go, %s', (_, isGpuAlone) => {
    it.each([0.1, 0.2, 0.5, 1, 5])('looking every %d s', async (interval) => {
      for (const seed of interval < 0.5 ? [4] : [2, 3, 4, 8]) {
        const found = await findings({ scenario: 'healthy', seconds: 3000, seed, interval, isGpuAlone })
        expect(words(found.filter((one) => one.severity !== 'info')), `seed ${seed}`).toEqual([])
      }
    })
  })
})
