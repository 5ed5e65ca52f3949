// A week of a model server: weights that stay, a cache of requests that follows the hour of the day, quiet nights, a weekend, restarts. Nothing of it is wrong.
import { NO_READINGS } from '../../dist/core/record.js'
import { detectors } from '../../dist/detectors/index.js'
import { random } from './generator.mjs'

const START = 1_759_708_800_000
const TOTAL = 80 * 1024 ** 3
const HOUR = 3600

/** Findings by detector and severity over `days` of one sample every `interval` seconds. */
function week(seed, days, interval) {
  const draw = random(seed)
  const made = detectors.map((kind) => kind.create(kind.defaults))
  const said = new Map()
  const weights = draw.between(0.2, 0.5)
  const most = draw.between(0.1, 0.35)
  const peakHour = draw.between(11, 16)
  const restartHour = draw.between(24, 24 * days)
  const holder = {
    pid: 7,
    type: 'compute',
    memoryUsedBytes: 0,
    smRatio: null,
    memoryRatio: null,
    encoderRatio: null,
    decoderRatio: null,
    gpu: 'GPU-0',
  }
  const info = {
    user: 'serve',
    name: 'python',
    residentBytes: 8 * 1024 ** 3,
    startedAt: START - 3_600_000,
    pid: 7,
    parentPid: 1,
    command: ['python', 'serve.py'],
  }
  let [level, busy] = [0, 0]
  for (let second = 0; second < days * 24 * HOUR; second += interval) {
    const hour = (second / HOUR) % 24
    const weekend = Math.floor(second / HOUR / 24) % 7 >= 5 ? 0.4 : 1
    const demand = weekend * (0.08 + 0.92 * Math.exp(-(((((hour - peakHour + 36) % 24) - 12) / 4) ** 2)))
    busy = draw.chance(Math.min(1, interval / 40)) ? (draw.chance(0.1 + 0.85 * demand) ? 1 : 0) : busy
    const wanted = most * demand * (busy ? draw.between(0.4, 1) : draw.between(0.2, 0.6))
    level += (wanted - level) * Math.min(1, interval / 20)
    const isDown = Math.abs(second / HOUR - restartHour) < 0.02
    const used = isDown ? 0 : Math.round((weights + level) * 40_960) / 40_960
    const at = START + second * 1000
    const processes = isDown ? [] : [{ ...holder, memoryUsedBytes: used * TOTAL }]
    const sample = {
      ...NO_READINGS,
      kind: 'gpu',
      at,
      gpu: 'GPU-0',
      state: 'ok',
      stateReason: null,
      slowAt: null,
      processes,
      memoryTotalBytes: TOTAL,
      memoryUsedBytes: used * TOTAL,
      utilizationRatio: busy && !isDown ? Math.min(1, draw.between(0.2, 0.7) + 0.3 * demand) : 0,
      temperatureCelsius: 45 + 20 * demand + draw.normal(),
      powerWatts: 120 + (busy ? 250 * draw.between(0.4, 1) : 0),
    }
    const input = { type: 'gpu', sample, processes: processes.map((one) => ({ ...one, info })) }
    for (const detector of made)
      for (const { state, severity, detector: name } of detector.accept(input))
        if (state === 'active') said.set(`${name} ${severity}`, (said.get(`${name} ${severity}`) ?? 0) + 1)
  }
  return said
}

/** What is said of a server that is well: rows of findings, and how many warnings or worse. */
export function serving(seeds, days, interval) {
  const rows = {}
  let loud = 0
  for (const seed of seeds)
    for (const [what, count] of week(seed, days, interval)) {
      rows[what] = (rows[what] ?? 0) + count
      if (!what.endsWith('info')) loud += count
    }
  return { rows, loud, days: seeds.length * days }
}
