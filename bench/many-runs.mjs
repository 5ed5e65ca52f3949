// What many training runs at once cost the detectors: microseconds per step and per GPU sample, memory, and the state that is saved.
// node --expose-gc bench/many-runs.mjs [runs] [ranks] [steps of each rank]

import { NO_READINGS } from '../dist/core/record.js'
import { createEngine } from '../dist/detectors/engine.js'
import { detectors } from '../dist/detectors/index.js'
import { random } from './accuracy/generator.mjs'

const [most = 256, ranks = 8, rounds = 300] = process.argv.slice(2).map(Number)
const GPUS = 8
const TOTAL = 80 * 1024 ** 3
const START = 1_790_000_000_000

function cost(runs) {
  const draw = random(11)
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const engine = createEngine({ kinds: detectors, hostname: 'bench', maxRuns: Math.max(256, runs) })
  const sample = (gpu, at) => ({
    ...{ ...NO_READINGS, kind: 'gpu', at, gpu: `GPU-${gpu}`, state: 'ok', stateReason: null, slowAt: null, processes: [] },
    ...{ memoryTotalBytes: TOTAL, memoryUsedBytes: 0.5 * TOTAL, utilizationRatio: 0.9, powerWatts: 400, temperatureCelsius: 60 },
  })
  let [stepMicros, sampleMicros] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    const at = START + round * 1000
    const steps = []
    for (let run = 0; run < runs; run++)
      for (let rank = 0; rank < ranks; rank++) steps.push(stepOf(`run-${run}`, rank, at + run, round, draw))
    const gpus = Array.from({ length: GPUS }, (_, gpu) => sample(gpu, at + 999))
    const tick = { seq: round, at: at + 999, source: 'nvidia', provenance: 'live', gpus, processes: [], host: null, events: [] }
    stepMicros += spent(() => engine.accept({ type: 'steps', steps, provenance: 'live' }))
    sampleMicros += spent(() => engine.accept({ type: 'tick', tick }))
  }
  globalThis.gc?.()
  const heap = process.memoryUsage().heapUsed - before
  let saved = ''
  const saveMicros = spent(() => {
    saved = JSON.stringify(engine.snapshot())
  })
  return {
    runs,
    'µs per step': (stepMicros / (rounds * runs * ranks)).toFixed(2),
    'µs per GPU sample': (sampleMicros / (rounds * GPUS)).toFixed(2),
    'memory, MB': (heap / 1e6).toFixed(1),
    'saved state, MB': (saved.length / 1e6).toFixed(2),
    'saving, ms': (saveMicros / 1000).toFixed(0),
    'not followed': engine.unfollowed().runs.length,
  }
}

/** The processor's time, not the clock's: other programs run on the same cores. */
function spent(work) {
  const begin = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(begin)
  return user + system
}

function stepOf(run, rank, at, step, draw) {
  const allocated = (0.4 + 0.02 * draw.normal()) * TOTAL
  return {
    ...{ kind: 'step', at, run, rank, step, epoch: null, learningRate: 1e-4, throughputPerSecond: 100, stepSeconds: 1, custom: null },
    ...{ loss: 2 + 0.05 * draw.normal(), gradientNorm: 0.5 + 0.05 * draw.normal(), allocRetries: 0, oomCount: 0 },
    ...{ memoryAllocatedBytes: allocated, memoryReservedBytes: 1.1 * allocated, memoryActiveBytes: allocated },
    ...{ memoryInactiveSplitBytes: 0.05 * allocated, memoryPeakAllocatedBytes: 1.05 * allocated, memoryPeakReservedBytes: null },
    phaseSeconds: { data: 0.05, forward: 0.4, backward: 0.5 },
  }
}

// The first one warms up the compiler.
cost(1)
console.table([1, 32, most].map(cost))
