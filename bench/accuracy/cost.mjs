// What the detectors cost: microseconds per GPU sample and the size of their state, for one GPU with one process at ten samples a second and
// a training run at one step a second.

import { NO_READINGS } from '../../dist/core/record.js'
import { detectors } from '../../dist/detectors/index.js'
import { random } from './generator.mjs'

const TOTAL = 80 * 1024 ** 3

export function cost(samples = 400_000) {
  const draw = random(5)
  const used = Float64Array.from({ length: samples }, (_, i) => (0.4 + 0.05 * ((i % 300) / 300) + 0.001 * draw.normal()) * TOTAL)
  const info = { user: 'u', name: 'python', residentBytes: 8 * 1024 ** 3, startedAt: 1 }
  const steps = Array.from({ length: Math.ceil(samples / 10) }, (_, i) => stepOf(1_760_000_000_000 + i * 1000, i, used[i * 10], draw))
  const host = { type: 'host', sample: { kind: 'host', at: 0, memoryTotalBytes: 256 * 1024 ** 3, processes: [] } }
  const rows = {}
  let all = 0
  let bytes = 0
  // What the loop itself costs, with a detector that does nothing: it is paid once for each detector here, and not by any of them.
  const nothing = { name: 'nothing', defaults: {}, create: () => ({ accept: () => [], snapshot: () => null }) }
  let idle = Number.POSITIVE_INFINITY
  const spent = new Map()
  for (const kind of [nothing, ...detectors, nothing]) {
    const detector = kind.create(kind.defaults)
    const holder = {
      pid: 7,
      type: 'compute',
      memoryUsedBytes: 0,
      smRatio: null,
      memoryRatio: null,
      encoderRatio: null,
      decoderRatio: null,
      gpu: 'GPU-0',
      info,
    }
    const sample = {
      ...NO_READINGS,
      kind: 'gpu',
      gpu: 'GPU-0',
      state: 'ok',
      stateReason: null,
      slowAt: null,
      processes: [holder],
      memoryTotalBytes: TOTAL,
    }
    const input = { type: 'gpu', sample, processes: sample.processes }
    // The processor's time, not the clock's: other programs run on the same cores.
    const begin = process.cpuUsage()
    for (let i = 0; i < samples; i++) {
      sample.at = 1_760_000_000_000 + i * 100
      sample.memoryUsedBytes = used[i]
      holder.memoryUsedBytes = used[i]
      sample.utilizationRatio = 0.9 + 0.05 * Math.sin(i)
      sample.temperatureCelsius = 60 + (i % 3)
      sample.powerWatts = 400 + (i % 17)
      if (i % 10 === 0) {
        host.sample.at = sample.at
        detector.accept(host)
        detector.accept({ type: 'step', step: steps[i / 10] })
      }
      detector.accept(input)
    }
    const { user, system } = process.cpuUsage(begin)
    const micros = (user + system) / samples
    if (kind === nothing) {
      idle = Math.min(idle, micros)
      continue
    }
    const state = JSON.stringify(detector.snapshot()).length
    bytes += state
    spent.set(kind.name, { micros, state })
  }
  for (const [name, { micros, state }] of spent) {
    const own = Math.max(0, micros - idle)
    all += own
    rows[name] = { 'µs per sample': own.toFixed(2), 'state as JSON, KB': (state / 1024).toFixed(1) }
  }
  // With every tenth GPU sample come one of the host and one step of training: twelve samples where ten are of the GPU.
  return { rows, micros: all, microsOfAny: all / 1.2, kilobytes: bytes / 1024 }
}

function stepOf(at, step, allocated, draw) {
  return {
    kind: 'step',
    at,
    run: 'bench',
    rank: 0,
    step,
    epoch: null,
    loss: 2 + 0.05 * draw.normal(),
    learningRate: 1e-4,
    gradientNorm: 0.5 + 0.05 * draw.normal(),
    throughputPerSecond: 100,
    stepSeconds: 1,
    memoryAllocatedBytes: allocated,
    memoryReservedBytes: 1.1 * allocated,
    memoryActiveBytes: allocated,
    memoryInactiveSplitBytes: 0.05 * allocated,
    memoryPeakAllocatedBytes: 1.05 * allocated,
    memoryPeakReservedBytes: null,
    allocRetries: 0,
    oomCount: 0,
    phaseSeconds: { data: 0.05, forward: 0.4, backward: 0.5 },
    custom: null,
  }
}
