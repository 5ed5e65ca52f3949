// Step times of many ranks with known truth: jobs that are well, of which no rank may be named, and one rank that becomes a fifth slower.
import { straggler } from '../../dist/detectors/straggler.js'
import { random } from './generator.mjs'

const START = 1_760_000_000_000
const STEPS = 400
const ONSET = 150

/** Each: (draw, ranks) → seconds of a rank at a step. `ranks`: how many a job has. */
const JOBS = {
  'alike, noise 2%': { ranks: 8, make: (draw) => () => Math.exp(0.02 * draw.normal()) },
  'alike, noise 5%': { ranks: 16, make: (draw) => () => Math.exp(0.05 * draw.normal()) },
  'alike, noise 10%': { ranks: 8, make: (draw) => () => Math.exp(0.1 * draw.normal()) },
  'slow steps now and then (1 of 50, up to 4 times)': {
    ranks: 8,
    make: (draw) => () => Math.exp(0.03 * draw.normal()) * (draw.chance(0.02) ? draw.between(1.3, 4) : 1),
  },
  'two lengths of a step, at random': { ranks: 8, make: (draw) => () => Math.exp(0.02 * draw.normal()) * (draw.chance(0.3) ? 1.5 : 1) },
  'two lengths of a step, each for a while': {
    ranks: 8,
    make(draw, ranks) {
      const long = Array.from({ length: ranks }, () => draw.chance(0.5))
      return (rank) => {
        if (draw.chance(0.1)) long[rank] = !long[rank]
        return Math.exp(0.02 * draw.normal()) * (long[rank] ? 1.3 : 1)
      }
    },
  },
  'a pipeline of four stages, not named': {
    ranks: 16,
    make(draw) {
      const stages = [1, 1, draw.between(1, 1.3), draw.between(1.3, 2)]
      return (rank) => Math.exp(0.03 * draw.normal()) * stages[rank >> 2]
    },
  },
  'a pipeline of eight stages, not named': {
    ranks: 16,
    make(draw) {
      const stages = Array.from({ length: 8 }, () => draw.between(1, 1.6))
      return (rank) => Math.exp(0.03 * draw.normal()) * stages[rank >> 1]
    },
  },
}

function named({ ranks, make }, seed, slow = null) {
  const draw = random(seed)
  const seconds = make(draw, ranks)
  const detector = straggler.create(straggler.defaults)
  const found = new Map()
  for (let step = 0; step < STEPS; step++)
    for (let rank = 0; rank < ranks; rank++) {
      const stepSeconds = seconds(rank, step) * (rank === slow?.rank && step >= ONSET ? slow.by : 1)
      const one = {
        kind: 'step',
        at: START + step * 1000 + rank,
        run: 'bench',
        rank,
        step,
        loss: null,
        stepSeconds,
        phaseSeconds: null,
        custom: null,
      }
      for (const finding of detector.accept({ type: 'step', step: one }))
        if (finding.state === 'active' && !found.has(finding.subject.rank)) found.set(finding.subject.rank, step)
    }
  return found
}

/** Ranks named without reason in each kind of job, and how many steps a rank that becomes a fifth slower takes. */
export function stragglers(seeds, each) {
  const rows = {}
  for (const [name, job] of Object.entries(JOBS)) {
    let [workers, wrong] = [0, 0]
    for (const seed of seeds)
      for (let n = 0; n < each; n++) {
        workers += job.ranks
        wrong += named(job, seed * 1000 + n).size
      }
    rows[name] = { workers, 'named without reason': wrong }
  }
  const delays = []
  for (const name of ['alike, noise 2%', 'alike, noise 5%'])
    for (const seed of seeds)
      for (let n = 0; n < each; n++) {
        const at = named(JOBS[name], seed * 1000 + n, { rank: 3, by: 1.2 }).get(3)
        delays.push(at === undefined || at < ONSET ? Number.POSITIVE_INFINITY : at - ONSET + 1)
      }
  const workers = Object.values(rows).reduce((sum, row) => sum + row.workers, 0)
  const wrong = Object.values(rows).reduce((sum, row) => sum + row['named without reason'], 0)
  return {
    rows,
    per10000: (10_000 * wrong) / workers,
    workers,
    inFour: delays.filter((delay) => delay <= 4).length / delays.length,
    medianSteps: delays.sort((a, b) => a - b)[delays.length >> 1],
  }
}
