// What the detectors say of hours of simulated work in which all is well: the demo's trainings, each with evaluations and checkpoints,
// at several sampling intervals. Whatever is a warning here is false.

import { Hub } from '../../dist/agent/hub.js'
import { SILENT_LOG } from '../../dist/agent/one-look.js'
import { State } from '../../dist/agent/state.js'
import { createEngine } from '../../dist/detectors/engine.js'
import { detectors } from '../../dist/detectors/index.js'
import { demo } from '../../dist/sources/demo/index.js'

const START = 1_760_000_000_000
export const INTERVALS = [0.1, 0.2, 0.5, 1, 5]

/** Every finding of one seed at one interval. `gpus`: the demo's own number when not given. */
export async function healthyFindings({ seed, interval, hours, gpus = 2, withSteps = true }) {
  const options = { demoScenario: 'healthy', seed, demoGpus: gpus }
  let at = START
  const source = await demo.open({ root: '/', env: {}, intervalMs: interval * 1000, options, log: () => undefined, now: () => at })
  const self = { version: '0', startedAt: START, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }
  const state = new State({ now: () => at, health: () => [], sinks: () => [], self: () => self, devices: null })
  const hub = new Hub({ state, log: SILENT_LOG, onProcesses: () => undefined })
  const engine = createEngine({ kinds: detectors, hostname: 'bench' })
  const findings = []
  const accept = (event) => void findings.push(...engine.accept(event))
  hub.addSink({ name: 'detectors', accept, dropped: () => ({ count: 0, reason: null }), close: async () => undefined })
  hub.receiveDevices('demo', source.devices())
  for (let tick = 0; tick * interval <= hours * 3600; tick++) {
    at = START + Math.round(tick * interval * 1000)
    const samples = await source.read({ at, monotonicMs: at - START, tick })
    const shown = withSteps ? samples : samples.filter((sample) => sample.kind !== 'step')
    hub.receive({ source: 'demo', provenance: 'simulated', at, samples: shown })
  }
  if (engine.failures().length > 0) throw new Error(`a detector failed: ${JSON.stringify(engine.failures())}`)
  return findings
}

/** Beginnings of warnings and of information by detector, over all seeds, and the hours of a GPU that they took. */
export async function healthy(seeds, hours, intervals = INTERVALS) {
  const rows = {}
  const warnings = []
  for (const withSteps of [true, false])
    for (const interval of intervals) {
      const row = { 'GPU hours': 2 * hours * seeds.length, warnings: 0, information: 0, of: '' }
      const names = new Set()
      for (const seed of seeds) {
        const open = new Map()
        for (const finding of await healthyFindings({ seed, interval, hours, withSteps })) {
          const before = open.get(finding.fingerprint)
          if (finding.state === 'resolved') open.delete(finding.fingerprint)
          else open.set(finding.fingerprint, finding.severity)
          if (finding.state === 'resolved' || before === finding.severity) continue
          const isLoud = finding.severity !== 'info'
          row[isLoud ? 'warnings' : 'information']++
          names.add(`${finding.detector}${isLoud ? '!' : ''}`)
          const second = (finding.at - START) / 1000
          if (isLoud)
            warnings.push(`seed ${seed}, every ${interval} s, ${withSteps ? 'with steps' : 'GPU alone'}, ${second} s: ${finding.message}`)
        }
      }
      row.of = [...names].sort().join(' ') || '–'
      rows[`every ${interval} s, ${withSteps ? 'with steps' : 'GPU alone'}`] = row
    }
  return { rows, warnings }
}
