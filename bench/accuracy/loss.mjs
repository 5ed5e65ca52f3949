// Training curves with known truth: long clean ones, on which nothing may be said, and ones that jump or drift at a known step.
import { diverged } from '../../dist/detectors/diverged.js'
import { gradExplosion } from '../../dist/detectors/grad-explosion.js'
import { lossNan } from '../../dist/detectors/loss-nan.js'
import { lossSpike } from '../../dist/detectors/loss-spike.js'
import { random } from './generator.mjs'

const START = 1_760_000_000_000

/** Heavy tails by a ratio of normals: Student's t with `freedom` degrees. */
function student(draw, freedom) {
  let sum = 0
  for (let i = 0; i < freedom; i++) sum += draw.normal() ** 2
  return draw.normal() / Math.sqrt(sum / freedom)
}

const decay = (i, n) => 2 + 7 * (1 + i / (0.002 * n)) ** -0.5

/** Each: (draw, steps) → a function from the index of a step to { loss, norm, step }. `step` goes back where a run restarts. */
export const CLEAN = {
  'smooth decay': (draw, n) => (i) => ({ loss: decay(i, n) + 0.03 * draw.normal() }),
  'heavy tails (t, 3)': (draw, n) => (i) => ({ loss: decay(i, n) + 0.05 * student(draw, 3) }),
  'noise in proportion': (draw, n) => (i) => ({ loss: (0.05 + 9 * Math.exp((-8 * i) / n)) * Math.exp(0.15 * draw.normal()) }),
  'hard batches': (draw, n) => (i) => ({ loss: decay(i, n) + 0.03 * draw.normal() + (draw.chance(0.04) ? draw.between(0.5, 2) : 0) }),
  'epochs that drop': (draw, n) => (i) => ({ loss: 3 - 0.25 * Math.floor((8 * i) / n) + 0.06 * student(draw, 5) }),
  'warm restarts of the rate': (draw, n) => (i) => {
    const phase = (8 * i) / n
    const rate = 0.5 + 0.5 * Math.cos(Math.PI * (phase - Math.floor(phase)))
    return { loss: decay(i, n) + 0.12 * rate * Math.min(1, (phase - Math.floor(phase)) * 50) + 0.04 * draw.normal() }
  },
  'restarts from a checkpoint': (draw, n) => {
    const every = Math.floor(n / 6)
    const lost = Math.floor(every / 8)
    return (i) => {
      const step = i - lost * Math.floor(i / every)
      return { step, loss: decay(step, n) + 0.04 * draw.normal() }
    }
  },
  'a resumed run that needs a moment': (draw, n) => {
    const every = Math.floor(n / 6)
    const lost = Math.floor(every / 8)
    return (i) => {
      const step = i - lost * Math.floor(i / every)
      const since = i >= every ? i % every : n
      return { step, loss: decay(step, n) + 0.4 * Math.exp(-since / 100) + 0.04 * draw.normal() }
    }
  },
  'a slow rise of the noise': (draw, n) => (i) => ({ loss: 2.4 + (0.03 + (0.1 * i) / n) * draw.normal() }),
  'smoothed over twenty steps': (draw, n) => {
    let smooth = null
    return (i) => {
      const loss = decay(i, n) + 0.1 * student(draw, 4)
      smooth = smooth === null ? loss : 0.95 * smooth + 0.05 * loss
      return { loss: smooth }
    }
  },
  'a random walk that is held': (draw, n) => {
    let drift = 0
    return (i) => {
      drift = 0.98 * drift + 0.015 * draw.normal()
      return { loss: decay(i, n) + drift }
    }
  },
  'correlated noise': (draw, n) => {
    let drift = 0
    return (i) => {
      drift = 0.9 * drift + 0.02 * draw.normal()
      return { loss: decay(i, n) + drift + 0.02 * draw.normal() }
    }
  },
}

/** Gradient norms beside the loss: falling, with heavy tails, up to ten times the usual. */
function normOf(draw, i) {
  return (0.4 + 4 * Math.exp(-i / 500)) * Math.exp(Math.min(Math.LN10, 0.3 * student(draw, 6)))
}

const PLAIN = {
  'mean + 3 σ of 257 steps': () => {
    const ring = []
    return (loss) => {
      const mean = ring.reduce((sum, one) => sum + one, 0) / ring.length
      const spread = Math.sqrt(ring.reduce((sum, one) => sum + (one - mean) ** 2, 0) / ring.length)
      const alarm = ring.length >= 65 && loss > mean + 3 * spread
      ring.push(loss)
      if (ring.length > 257) ring.shift()
      return alarm
    }
  },
  'twice the smoothed loss': () => {
    let smooth = null
    return (loss) => {
      const alarm = smooth !== null && loss > 2 * smooth
      smooth = smooth === null ? loss : 0.98 * smooth + 0.02 * loss
      return alarm
    }
  },
}

function detectorAlarms(kinds) {
  const made = kinds.map((kind) => kind.create(kind.defaults))
  return (step) => {
    const said = made.flatMap((detector) => detector.accept({ type: 'step', step }))
    return said.some((finding) => finding.state === 'active' && finding.severity !== 'info')
  }
}

function stepOf(index, { step = index, loss, norm = null }) {
  return { kind: 'step', at: START + index * 1000, run: 'bench', rank: 0, step, loss, gradientNorm: norm, learningRate: null }
}

/** False alarms on clean curves, by kind. */
export function clean(seeds, steps) {
  const rows = {}
  for (const [name, make] of Object.entries(CLEAN)) {
    const row = { gpuwarden: 0, ...Object.fromEntries(Object.keys(PLAIN).map((plain) => [plain, 0])) }
    for (const seed of seeds) {
      const draw = random(seed)
      const curve = make(draw, steps)
      const ours = detectorAlarms([lossSpike, gradExplosion, lossNan, diverged])
      const plain = Object.entries(PLAIN).map(([plainName, plainMake]) => [plainName, plainMake()])
      for (let i = 0; i < steps; i++) {
        const at = curve(i)
        if (ours(stepOf(i, { ...at, norm: normOf(draw, i) }))) row.gpuwarden++
        for (const [plainName, alarm] of plain) if (alarm(at.loss)) row[plainName]++
      }
    }
    rows[name] = row
  }
  return rows
}

const TROUBLES = {
  '+0.5 nat': { within: 6, goal: 0.95, add: (since) => (since >= 0 ? 0.5 : 0) },
  '+0.5 nat that decays (half in four steps)': { within: 6, goal: 0.6, add: (since) => (since >= 0 ? 0.5 * 0.5 ** (since / 4) : 0) },
  '+0.5 nat, heavy tails (t, 5)': { within: 6, goal: 0.9, tails: 5, add: (since) => (since >= 0 ? 0.5 : 0) },
  'slow divergence, 0.02 a step': { within: 30, goal: 0.95, add: (since) => Math.max(0, since) * 0.02 },
}

/** How often a trouble is found in time; the noise is between 0.02 and 0.1 nat. */
export function troubles(seeds, each) {
  const rows = {}
  for (const [name, { within, goal, add, tails }] of Object.entries(TROUBLES)) {
    const delays = []
    for (const seed of seeds)
      for (let n = 0; n < each; n++) {
        const draw = random(seed * 1000 + n)
        const noise = draw.between(0.02, 0.1)
        const from = Math.floor(draw.between(300, 1500))
        const ours = detectorAlarms([lossSpike])
        let found = null
        for (let i = 0; i < from + 60 && found === null; i++) {
          const loss = 2 + 1.5 * Math.exp(-i / 600) + noise * (tails ? student(draw, tails) : draw.normal()) + add(i - from)
          if (ours(stepOf(i, { loss }))) found = i - from + 1
        }
        delays.push(found ?? Number.POSITIVE_INFINITY)
      }
    const good = delays.filter((delay) => delay >= 1)
    rows[name] = {
      runs: delays.length,
      within,
      goal,
      'in time': good.filter((delay) => delay <= within).length / delays.length,
      'median steps': good.sort((a, b) => a - b)[good.length >> 1],
      'alarms before': delays.length - good.length,
    }
  }
  return rows
}
