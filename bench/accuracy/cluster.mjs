// GPU memory of an inference cluster, made up, with known truth: share of capacity, one value every 57 s for 22.8 hours.
// A server works in bursts of requests and rests in between; memory is what the last request left. The figures are rounded statistics
// (quantiles, shares, lengths) of a public trace of 106 GPUs, none of its values. Leaks, other ends and lasting growth are made up.
// Three more hours are made and not shown, so that an alarm in the last hours is judged by what would have come.
import { random } from './generator.mjs'

export const INTERVAL = 57
const SHOWN = Math.round((22.8 * 3600) / INTERVAL)
const MADE = SHOWN + Math.round((3 * 3600) / INTERVAL)
const QUANTUM = 2 / 81_920
/** Benign memory stays below. */
const TOP = 0.985
/** What a model needs before the first request. */
const WEIGHTS = 0.2

/** How many of 100 series are of each class. */
const CLASSES = { busy: 77, tiered: 20, flat: 3 }

/** Levels are quantiles, [share, level]. Hours: [from, counted from the start of work; share of the time at rest; minutes of a rest]. */
const SERVERS = {
  busy: {
    spread: 0.025,
    work: [
      [0, 0.19],
      [0.01, 0.23],
      [0.05, 0.27],
      [0.25, 0.385],
      [0.5, 0.44],
      [0.75, 0.475],
      [0.95, 0.51],
      [1, 0.515],
    ],
    rest: [
      [0, 0.22],
      [0.02, 0.3],
      [0.05, 0.41],
      [0.25, 0.46],
      [0.5, 0.5],
      [0.9, 0.508],
      [0.95, 0.55],
      [0.99, 0.72],
      [1, 0.87],
    ],
    hours: [
      [-2, 0.83, 20],
      [0, 0.06, 8],
      [3, 0.7, 12],
      [4, 0.06, 8],
      [8.7, 0.75, 13],
      [13, 0.9, 24],
      [17, 0.985, 100],
    ],
    /** How much a reading resembles the one before, and how many readings a request is held. */
    memory: 0.25,
    held: 1.05,
    smooth: 1,
    /** Large requests: chance at a working reading, mean readings, height. */
    large: {
      chance: 0.014,
      readings: 3,
      height: [
        [0, 0.53],
        [0.5, 0.6],
        [0.9, 0.73],
        [1, 0.97],
      ],
    },
    restarts: { perDay: 0.12, readings: [1, 2], hours: [0, 22] },
  },
  tiered: {
    spread: 0.03,
    work: [
      [0, 0.18],
      [0.05, 0.2],
      [0.1, 0.29],
      [0.25, 0.44],
      [0.5, 0.51],
      [0.75, 0.57],
      [0.95, 0.66],
      [0.99, 0.83],
      [1, 0.88],
    ],
    rest: [
      [0, 0.18],
      [0.05, 0.2],
      [0.15, 0.5],
      [0.5, 0.6],
      [0.75, 0.64],
      [0.95, 0.72],
      [1, 0.9],
    ],
    hours: [
      [-2, 0.98, 70],
      [0, 0.78, 12],
      [3, 0.9, 15],
      [4, 0.6, 9],
      [8.7, 0.85, 15],
      [11, 0.96, 50],
      [17, 0.99, 280],
    ],
    memory: 0,
    held: 1.7,
    /** A move takes this many readings. */
    smooth: 2,
    large: {
      chance: 0,
      readings: 0,
      height: [
        [0, 0],
        [1, 0],
      ],
    },
    restarts: { perDay: 1, readings: [2, 49], hours: [17.5, 18.5] },
  },
  flat: {
    spread: 0.2,
    work: [
      [0, 0.4],
      [1, 0.4],
    ],
    rest: [
      [0, 0.4],
      [1, 0.4],
    ],
    hours: [[-2, 1, 1e6]],
    memory: 0,
    held: 1,
    smooth: 1,
    large: {
      chance: 0,
      readings: 0,
      height: [
        [0, 0],
        [1, 0],
      ],
    },
    restarts: { perDay: 1, readings: [1, 2], hours: [19, 21] },
  },
}

const LEAST_REST = 5
/** Low levels at rest are left sooner than others. */
const LOW_REST = { below: 0.4, readings: 12 }

function quantileAt(table, share) {
  const upper = Math.max(
    1,
    table.findIndex(([from]) => from >= share),
  )
  const [[from, low], [to, high]] = [table[upper - 1], table[upper]]
  return low + ((high - low) * (share - from)) / (to - from)
}

const exponential = (draw, mean) => -mean * Math.log(1 - draw.uniform())
const shareOf = (normal) => 1 / (1 + Math.exp(-1.702 * normal))

/** What one server holds, reading by reading. */
function serve(server, draw) {
  const lead = draw.between(0.7, 1.3)
  const size = 1 + server.spread * Math.max(-2.5, Math.min(2.5, draw.normal()))
  const level = (table, share = draw.uniform()) => size * quantileAt(table, share)
  const values = new Float64Array(MADE)
  let resting = true
  /** Readings for which a rest goes on in any case. */
  let sure = LEAST_REST - 1
  let value = 0
  let held = 0
  let drift = draw.normal()
  for (let i = 0; i < MADE; i++) {
    const hour = (i * INTERVAL) / 3600 - lead
    const [, restShare, restMinutes] = server.hours.findLast(([from]) => hour >= from)
    const rest = (restMinutes * 60) / INTERVAL
    const isLow = resting && value < LOW_REST.below * size
    const stay = resting ? Math.min(rest, isLow ? LOW_REST.readings : rest) - LEAST_REST : (rest * (1 - restShare)) / restShare
    if (i === 0) value = level(server.rest)
    else if (sure > 0) sure--
    else if (restShare < 1 && draw.chance(1 / Math.max(1, stay))) {
      resting = !resting
      sure = resting ? LEAST_REST - 1 : 0
      if (resting) value = level(server.rest)
      held = 0
    }
    if (!resting && held-- <= 0) {
      drift = server.memory * drift + Math.sqrt(1 - server.memory ** 2) * draw.normal()
      const large = draw.chance(server.large.chance)
      value = large ? level(server.large.height) : level(server.work, shareOf(drift))
      held = Math.floor(exponential(draw, large ? server.large.readings : server.held - 1))
    }
    values[i] = Math.min(TOP, value)
  }
  const moved = values.map((one, i) => (server.smooth === 1 ? one : (one + values[Math.max(0, i - 1)]) / 2))
  if (draw.chance(server.restarts.perDay)) {
    const from = Math.round(((lead + draw.between(...server.restarts.hours)) * 3600) / INTERVAL)
    moved.fill(0, from, from + draw.integer(...server.restarts.readings))
  }
  return moved
}

/** What can happen to a server from an onset on: each returns the new value, given the old one and the seconds since. */
const EVENTS = {
  leak: { onset: [0.15, 0.45], hours: [2.5, 24], make: drip },
  'end by leak': { onset: [0.14, 0.48], hours: [1, 10], make: drip },
  'end by steps': { onset: [0.14, 0.48], hours: [1, 10], make: stairs },
  'end by requests': {
    onset: [0.14, 0.48],
    hours: [1, 10],
    make: (room, seconds) => (value, since) => aboveWeights(value, 1 + (room / (1 - WEIGHTS - room)) * (since / seconds)),
  },
  cache: {
    onset: [0.05, 0.45],
    hours: [0.3, 2],
    benign: true,
    make(_room, seconds, draw) {
      const growth = draw.between(0.05, 0.25)
      return (value, since) => value + growth * (1 - Math.exp(-since / seconds))
    },
  },
  demand: {
    onset: [0.05, 0.45],
    hours: [0.6, 4],
    benign: true,
    make(_room, seconds, draw) {
      const growth = draw.between(0.05, 0.25) / 0.3
      return (value, since) => aboveWeights(value, 1 + growth * Math.min(1, since / seconds))
    },
  },
}

function drip(room, seconds) {
  return (value, since) => value + (room * since) / seconds
}

/** Each load keeps something. */
function stairs(room, seconds, draw) {
  const steps = draw.integer(6, 20)
  let [kept, next] = [0, 0]
  return (value, since) => {
    if (since >= next) {
      kept += (room / steps) * draw.between(0.5, 1.5)
      next = since + exponential(draw, seconds / steps)
    }
    return value + kept
  }
}

function aboveWeights(value, factor) {
  return value <= WEIGHTS ? value : WEIGHTS + (value - WEIGHTS) * factor
}

/** Onset and `full` are sample numbers, −1: never; `leaks` says whether the onset is that of a leak or another end. */
function makeSeries(name, event, seed) {
  const draw = random(seed)
  const values = serve(SERVERS[name], draw)
  let onset = -1
  if (event !== null) {
    const { onset: range, hours, make } = EVENTS[event]
    onset = Math.floor(draw.between(...range) * SHOWN)
    const change = make(1 - Math.min(0.9, values[onset]), draw.logBetween(...hours) * 3600, draw)
    for (let i = onset; i < MADE; i++) values[i] = change(values[i], (i - onset) * INTERVAL)
  }
  const benign = event === null || EVENTS[event].benign === true
  for (let i = 0; i < MADE; i++) values[i] = Math.round((benign ? Math.min(TOP, values[i]) : values[i]) / QUANTUM) * QUANTUM
  const full = values.findIndex((value) => value >= 1)
  const shown = full < 0 ? SHOWN : Math.min(full, SHOWN)
  return { name, event, values: values.subarray(0, shown), onset, leaks: !benign, full, fills: full >= 0 && full <= SHOWN }
}

/** `each` servers of one seed, in the proportions of the cluster: as they are, and with each of what can happen. */
export function cluster(seed, each) {
  const series = []
  for (let k = 0; k < each; k++) {
    const place = (100 * (k + ((seed * Math.SQRT2) % 1))) / each
    const name = place < CLASSES.busy ? 'busy' : place < CLASSES.busy + CLASSES.tiered ? 'tiered' : 'flat'
    const add = (event, copy = 0) =>
      series.push(makeSeries(name, event, Math.imul(seed * 1009 + k, 0x9e3779b1) + 7919 * series.length + copy))
    add(null)
    for (const event of ['leak', 'end by leak']) for (const copy of [0, 1]) add(event, copy)
    if (name !== 'flat') for (const event of ['end by steps', 'end by requests', k % 2 === 0 ? 'cache' : 'demand']) add(event)
  }
  return series
}
