/** What counting usage costs per tick, as a ratio to the other parts that see every tick: `node bench/usage.mjs [--ticks 20000]`. */
import { loadConfig } from '../dist/agent/config.js'
import { nothingKnown } from '../dist/core/fields/field.js'
import { PROCESS_INFO, PROCESS_SHARES } from '../dist/core/fields/process.js'
import { NO_FACTS, NO_READINGS } from '../dist/core/record.js'
import { createEngine } from '../dist/detectors/engine.js'
import { detectors } from '../dist/detectors/index.js'
import { detectorOptions } from '../dist/detectors/settings.js'
import { EventCounts } from '../dist/exporter/event-counts.js'
import { createHistory } from '../dist/store/history.js'
import { ProcessHistory } from '../dist/store/process-history.js'
import { createUsage } from '../dist/usage/usage.js'

const asked = process.argv.indexOf('--ticks')
const TICKS = asked < 0 ? 20_000 : Number(process.argv[asked + 1])
const WARM_UP = 2000
const TURN = 200
const silent = () => undefined
const log = { debug: silent, info: silent, warn: silent, error: silent, child: () => log }
const { values } = loadConfig({ env: {} })
let at = Date.UTC(2026, 0, 1)

const cards = Array.from({ length: 8 }, (_, index) => ({
  ...NO_FACTS,
  ...{ id: `GPU-${index}`, index, label: String(index), vendor: 'nvidia', provenance: 'live', name: 'NVIDIA H100 80GB HBM3' },
}))
const pidOf = (index, which) => 100 + index * 2 + which
const infos = new Map(
  cards.flatMap(({ index }) =>
    ['ada', 'ben'].map((user, which) => {
      const pid = pidOf(index, which)
      return [pid, { ...nothingKnown(PROCESS_INFO), pid, command: null, user, startedAt: at - 1e6, slurmJob: '7' }]
    }),
  ),
)

/** Eight GPUs with two processes of two users each. */
function tick(stepMs) {
  at += stepMs
  const processes = []
  const gpus = cards.map(({ id, index }) => {
    const own = [0, 1].map((which) => {
      const process = { pid: pidOf(index, which), type: 'compute', memoryUsedBytes: 30e9, ...nothingKnown(PROCESS_SHARES), smRatio: 0.4 }
      processes.push({ ...process, gpu: id, info: infos.get(process.pid) })
      return process
    })
    const readings = { utilizationRatio: 0.8, memoryUsedBytes: 61e9, memoryTotalBytes: 80e9, powerWatts: 500, smActiveRatio: 0.6 }
    return { ...NO_READINGS, kind: 'gpu', at, gpu: id, state: 'ok', stateReason: null, slowAt: null, ...readings, processes: own }
  })
  return { type: 'tick', tick: { seq: 0, at, source: 'nvidia', provenance: 'live', gpus, processes, host: null, events: [] } }
}

function cpuMicros() {
  const { user, system } = process.cpuUsage()
  return user + system
}

for (const stepMs of [1000, 100]) {
  const usage = createUsage({ dir: null, settings: values, intervalMs: stepMs, log, now: () => at, saveMs: 0 })
  const engine = createEngine({ kinds: detectors, options: detectorOptions(values), hostname: 'bench' })
  const others = [createHistory(values), new ProcessHistory(values), new EventCounts(), { accept: (event) => engine.accept(event) }]
  for (const sink of [usage, ...others]) sink.accept({ type: 'devices', devices: cards })
  const spent = { usage: 0, others: 0 }
  // By the CPU's time, in turns of some ticks each: other programs on the machine do not count.
  for (let count = -WARM_UP; count < TICKS; count += TURN) {
    const events = Array.from({ length: TURN }, () => tick(stepMs))
    const begin = cpuMicros()
    for (const event of events) for (const sink of others) sink.accept(event)
    const between = cpuMicros()
    for (const event of events) usage.accept(event)
    const end = cpuMicros()
    if (count < 0) continue
    spent.others += between - begin
    spent.usage += end - between
  }
  const micros = (value) => `${(value / TICKS).toFixed(1)} µs`
  const share = ((spent.usage / TICKS / stepMs / 1000) * 100).toFixed(4)
  console.log(
    `${1000 / stepMs} Hz: usage ${micros(spent.usage)} per tick (${share}% of a core); history, processes, counts and detectors ${micros(spent.others)}; ratio ${(spent.usage / spent.others).toFixed(3)}`,
  )
}
