/** The detectors over the simulated GPUs, on a clock of their own: an hour takes a second. */
import { Hub } from '../src/agent/hub.ts'
import { SILENT_LOG } from '../src/agent/one-look.ts'
import { State } from '../src/agent/state.ts'
import type { HubEvent, SelfUsage } from '../src/core/kinds.ts'
import type { Finding, Run } from '../src/core/model.ts'
import { createEngine } from '../src/detectors/engine.ts'
import { detectors } from '../src/detectors/index.ts'
import { demo } from '../src/sources/demo/index.ts'
import { sourceEnv } from '../src/sources/source.contract.ts'

export const START = 1_760_000_000_000
const SELF: SelfUsage = { version: '0', startedAt: START, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }

/** A scenario of the demo, and the detectors that must find it. */
export const TROUBLES: readonly [string, readonly string[]][] = [
  ['leak', ['leak']],
  ['oom', ['oom']],
  ['intruder', ['intruder']],
  ['overheat', ['thermal']],
  ['stall', ['stall']],
  ['straggler', ['straggler']],
  ['lost', ['gpu_lost', 'xid']],
  ['all', ['leak', 'oom', 'intruder', 'thermal', 'stall', 'gpu_lost', 'xid']],
]

export interface Play {
  readonly scenario: string
  readonly seconds: number
  readonly seed?: number
  readonly interval?: number
  /** Nobody reports training steps. */
  readonly isGpuAlone?: boolean
}

/** What the detectors say of a scenario, in the order in which they say it. */
export async function findings(play: Play): Promise<Finding[]> {
  return (await played(play)).found
}

export interface Played {
  readonly found: Finding[]
  /** As they were last reported. */
  readonly runs: ReadonlyMap<string, Run>
  /** Warnings and critical findings that were open at the end of each tick. */
  readonly open: readonly (readonly Finding[])[]
}

export async function played({ scenario, seconds, seed = 1, interval = 1, isGpuAlone = false }: Play): Promise<Played> {
  const source = await demo.open(sourceEnv({ options: { demoScenario: scenario, seed } }))
  if (source === null) throw new Error('the demo is always there')
  let at = START
  const state = new State({ now: () => at, health: () => [], sinks: () => [], self: () => SELF, devices: null })
  const hub = new Hub({ state, log: SILENT_LOG, onProcesses: () => undefined })
  const engine = createEngine({ kinds: detectors, hostname: 'host' })
  const found: Finding[] = []
  const runs = new Map<string, Run>()
  const open: Finding[][] = []
  hub.addSink({
    name: 'detectors',
    accept(event: HubEvent) {
      if (event.type === 'run') runs.set(event.run.id, event.run)
      found.push(...engine.accept(event))
    },
    dropped: () => ({ count: 0, reason: null }),
    close: async () => undefined,
  })
  hub.receiveDevices('demo', source.devices())
  for (let tick = 0; tick * interval <= seconds; tick++) {
    at = START + Math.round(tick * interval * 1000)
    const all = await source.read({ at, monotonicMs: at - START, tick })
    const samples = isGpuAlone ? all.filter((sample) => sample.kind !== 'step' && sample.kind !== 'run') : all
    hub.receive({ source: 'demo', provenance: 'simulated', at, samples })
    open.push(engine.findings().filter(({ severity }) => severity !== 'info'))
  }
  return { found, runs, open }
}

export const named = (found: readonly Finding[]) => new Set(found.map((one) => one.detector))
export const words = (found: readonly Finding[]) => found.map((one) => `${(one.at - START) / 1000} s ${one.severity} ${one.message}`)
