// A training that rests now and then, its GPU at 0 % without copies (data that is late, an upload of a checkpoint), and one that hangs:
// what is said of the one, and how soon of the other.

import { NO_READINGS } from '../../dist/core/record.js'
import { stall } from '../../dist/detectors/stall.js'
import { random } from './generator.mjs'

const START = 1_760_000_000_000
const GPU = 'GPU-0'
const PID = 4242
const HELD = 20 * 1024 ** 3
const TICK_MS = 500

/** Where pauses fall and what the host does in them. `every`: seconds or steps between two; `length`: seconds. */
export const RHYTHMS = {
  'every 303 s for 45 s, waiting': { every: () => 303, length: () => 45, cores: 0.05 },
  'irregular, 30 to 90 s, waiting': { every: (draw) => draw.between(180, 600), length: (draw) => draw.between(30, 90), cores: 0.05 },
  'irregular, 30 to 90 s, host at work': { every: (draw) => draw.between(180, 600), length: (draw) => draw.between(30, 90), cores: 0.97 },
  'every 500 steps for 30 to 90 s': { steps: 500, length: (draw) => draw.between(30, 90), cores: 0.05 },
}

/** Where a run hangs for good: the truth is its last step. */
export const HANGS = {
  'at any step': { after: (draw) => 613 + Math.floor(draw.between(0, 30)), pauses: [] },
  'at a round step': { after: () => 600, pauses: [] },
  'its process busy on the host': { after: (draw) => 613 + Math.floor(draw.between(0, 30)), pauses: [], cores: 1 },
  'after a pause of 45 s': { after: (draw) => 613 + Math.floor(draw.between(0, 30)), pauses: [[313, 45]] },
  'after two pauses of 45 s': {
    after: (draw) => 613 + Math.floor(draw.between(0, 30)),
    pauses: [
      [213, 45],
      [413, 45],
    ],
  },
}

/** Feeds one run: `rests(step)` gives how many seconds it rests after a step, Infinity for ever. */
function follow({ draw, seconds, stepSeconds, rests, cores, withSteps = true }) {
  const detector = stall.create(stall.defaults)
  const findings = []
  const accept = (input) => findings.push(...detector.accept(input))
  let [step, stepEnds, restsUntil, lastStepAt, usage] = [0, stepSeconds, -1, 0, 1]
  for (let ms = 0; ms < seconds * 1000; ms += TICK_MS) {
    const now = ms / 1000
    while (withSteps && stepEnds <= now) {
      lastStepAt = stepEnds
      accept({ type: 'step', step: stepOf(START + Math.round(stepEnds * 1000), step) })
      const rest = rests(step)
      step++
      if (rest > 0) restsUntil = stepEnds + rest
      stepEnds += rest + stepSeconds * draw.between(0.9, 1.1)
    }
    const isResting = now < restsUntil
    // Every second a new mean of the second before, as the source for the host gives it.
    if (ms % 1000 === 0) usage = (now - lastStepAt > 1 && isResting ? cores : 1.02) + draw.between(0, 0.01)
    accept(gpuOf(START + ms, isResting ? 0 : 0.94 + draw.between(-0.03, 0.03), isResting ? 120 : 520, usage))
  }
  return { findings, lastStepAt }
}

function gpuOf(at, utilizationRatio, powerWatts, cpuRatio) {
  const held = {
    pid: PID,
    type: 'compute',
    memoryUsedBytes: HELD,
    smRatio: null,
    memoryRatio: null,
    encoderRatio: null,
    decoderRatio: null,
  }
  const readings = { utilizationRatio, powerWatts, memoryUsedBytes: HELD, memoryTotalBytes: 4 * HELD, pcieTxBytesPerSecond: 2e7 }
  const sample = { ...NO_READINGS, ...readings, kind: 'gpu', at, gpu: GPU, state: 'ok', stateReason: null, slowAt: at, processes: [held] }
  return { type: 'gpu', sample, processes: [{ ...held, gpu: GPU, info: { pid: PID, user: null, cpuRatio } }] }
}

function stepOf(at, step) {
  return { kind: 'step', at, run: 'run', rank: 0, step, epoch: null, loss: 1, stepSeconds: null, phaseSeconds: null, custom: null }
}

/** How often a training that rests is called a stall, over some hours and seeds. */
export function pauses(seeds, hours, stepSeconds = 0.4) {
  const rows = {}
  for (const [name, rhythm] of Object.entries(RHYTHMS)) {
    // Where the host is at work, or the step is round, not even the first pause is to be taken for a stall.
    const isTold = rhythm.cores >= 0.5 || rhythm.steps !== undefined
    const row = { pauses: 0, warnings: 0, information: 0, 'runs with more than one warning': 0, isTold }
    for (const seed of seeds) {
      const draw = random(seed)
      let next = rhythm.steps === undefined ? Math.round(rhythm.every(draw) / stepSeconds) : rhythm.steps
      const rests = (step) => {
        if (step < next) return 0
        next = step + (rhythm.steps === undefined ? Math.round(rhythm.every(draw) / stepSeconds) : rhythm.steps)
        row.pauses++
        return rhythm.length(draw)
      }
      const { findings } = follow({ draw, seconds: hours * 3600, stepSeconds, rests, cores: rhythm.cores })
      const begun = findings.filter((one) => one.state === 'active')
      const loud = new Set(begun.filter((one) => one.severity === 'warning').map((one) => one.since)).size
      row.warnings += loud
      row.information += new Set(begun.map((one) => one.since)).size - loud
      if (loud > 1) row['runs with more than one warning']++
    }
    rows[name] = row
  }
  return rows
}

/** Seconds from the last step of a run that hangs to the first word and to the warning: median and worst over the seeds. */
export function hangs(seeds, stepSeconds = 0.4) {
  const rows = {}
  for (const [name, hang] of Object.entries(HANGS)) {
    const [said, warned] = [[], []]
    for (const seed of seeds) {
      const draw = random(seed)
      const after = hang.after(draw)
      const pausesAt = new Map(hang.pauses)
      const rests = (step) => (step >= after ? Number.POSITIVE_INFINITY : (pausesAt.get(step) ?? 0))
      const { findings, lastStepAt } = follow({ draw, seconds: 1200, stepSeconds, rests, cores: hang.cores ?? 0.02 })
      const own = findings.filter((one) => one.state === 'active' && one.at > START + lastStepAt * 1000)
      const late = (one) => (one === undefined ? Number.POSITIVE_INFINITY : (one.at - START) / 1000 - lastStepAt)
      said.push(late(own[0]))
      warned.push(late(own.find((one) => one.severity === 'warning')))
    }
    rows[name] = { 'first word': spread(said), warning: spread(warned) }
  }
  return rows
}

function spread(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return `${sorted[sorted.length >> 1].toFixed(1)} s (at most ${sorted.at(-1).toFixed(1)} s)`
}
