// Synthetic memory series with known truth: share of capacity, one value every 10 s for a day, nine benign kinds and nine leaking ones.
// A leak starts between 8 % and 40 % of the day and would fill the device in 2.5 to 60 hours; the series ends where it is full.
// Three more hours are made and not shown, so that an alarm in the last minutes of a day is judged by what would have come.

export const BENIGN = ['flat', 'saw', 'periodic', 'bursty', 'steps', 'warmup', 'diurnal', 'wander', 'cachefill']
export const LEAKING = [
  'leak',
  'leak+saw',
  'leak+periodic',
  'leak+bursty',
  'leak+steps',
  'stairs',
  'accelerating',
  'leak+diurnal',
  'leak+wander',
]

const INTERVAL = 10
const SHOWN = 86_400 / INTERVAL
const MADE = SHOWN + 10_800 / INTERVAL
const QUANTUM = 2 / 81_920

/** A small seeded generator (mulberry32) with the draws that are needed here. */
export function random(seed) {
  let state = seed >>> 0
  let spare = null
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const normal = () => {
    if (spare !== null) {
      const value = spare
      spare = null
      return value
    }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()))
    const angle = 2 * Math.PI * uniform()
    spare = radius * Math.sin(angle)
    return radius * Math.cos(angle)
  }
  return {
    uniform,
    normal,
    between: (low, high) => low + (high - low) * uniform(),
    logBetween: (low, high) => Math.exp(Math.log(low) + Math.log(high / low) * uniform()),
    integer: (low, high) => low + Math.floor((high - low + 1) * uniform()),
    chance: (probability) => uniform() < probability,
  }
}

const patterns = {
  flat() {
    // Nothing is added.
  },
  saw(values, draw) {
    const period = draw.logBetween(30, 900)
    const height = draw.between(0.01, 0.15)
    const jitter = draw.between(0, 0.3)
    let phase = 0
    let length = period
    let top = height
    for (let i = 0; i < values.length; i++) {
      phase += INTERVAL
      if (phase >= length) {
        phase -= length
        length = period * (1 + jitter * (draw.uniform() - 0.5))
        top = height * (1 + jitter * (draw.uniform() - 0.5))
        if (phase > length) phase = 0
      }
      values[i] += (top * phase) / length
    }
  },
  periodic(values, draw) {
    const period = draw.between(1200, 5400)
    const width = draw.between(60, 400)
    const height = draw.between(0.02, 0.12)
    const offset = draw.uniform() * period
    addOver(values, (t) => ((t + offset) % period < width ? height : 0))
  },
  bursty(values, draw) {
    const pause = draw.between(300, 1500)
    for (let i = 0; i < values.length; ) {
      i += Math.max(1, Math.round((-Math.log(1 - draw.uniform()) * pause) / INTERVAL))
      const length = draw.integer(1, 20)
      const height = draw.between(0.01, 0.15)
      for (let k = 0; k < length && i + k < values.length; k++) values[i + k] += height
      i += length
    }
  },
  steps(values, draw) {
    for (let count = draw.integer(1, 4); count > 0; count--) {
      const at = draw.integer(Math.floor(SHOWN * 0.05), SHOWN - 1)
      const height = draw.between(0.01, 0.12) * (draw.chance(0.7) ? 1 : -1)
      for (let i = at; i < values.length; i++) values[i] += height
    }
  },
  warmup(values, draw) {
    const tau = draw.logBetween(120, 5400)
    const height = draw.between(0.03, 0.3)
    addOver(values, (t) => -height * Math.exp(-t / tau))
  },
  diurnal(values, draw) {
    const period = draw.between(3, 14) * 3600
    const height = draw.between(0.01, 0.08)
    const offset = draw.uniform() * 2 * Math.PI
    addOver(values, (t) => height * Math.sin((2 * Math.PI * t) / period + offset))
  },
  wander(values, draw) {
    const pull = INTERVAL / draw.logBetween(300, 7200)
    const kick = draw.between(0.003, 0.025) * Math.sqrt(2 * pull)
    let level = 0
    for (let i = 0; i < values.length; i++) {
      level += kick * draw.normal() - pull * level
      values[i] += level
    }
  },
  cachefill(values, draw) {
    const height = draw.between(0.05, 0.3)
    const tau = draw.logBetween(1800, 4 * 3600)
    const grain = draw.between(0.002, 0.02)
    addOver(values, (t) => Math.floor((height * (1 - Math.exp(-t / tau))) / grain) * grain - height / 2)
  },
}

function addOver(values, added) {
  for (let i = 0; i < values.length; i++) values[i] += added(i * INTERVAL)
}

function addLeak(values, draw, mode, room) {
  const onset = draw.integer(Math.floor(SHOWN * 0.08), Math.floor(SHOWN * 0.4))
  const secondsToFull = draw.logBetween(2.5, 60) * 3600
  const rate = room / secondsToFull
  const stair = mode === 'stairs' ? draw.logBetween(120, 3600) : 0
  const phase = mode === 'stairs' ? draw.uniform() * stair : 0
  for (let i = onset; i < values.length; i++) {
    const t = (i - onset) * INTERVAL
    if (mode === 'stairs') values[i] += Math.floor((t + phase) / stair) * stair * rate
    else if (mode === 'accelerating') values[i] += rate * t * (0.5 + (0.5 * t) / secondsToFull)
    else values[i] += rate * t
  }
  return onset
}

/** One day of one kind. `onset` and `full` are indices, −1 when there is none; `full` may lie past the values, `fills` says that it does not. */
export function day(kind, seed) {
  const draw = random(seed)
  const values = new Float64Array(MADE)
  const base = draw.between(0.2, 0.55)
  const noise = draw.logBetween(0.0002, 0.004)
  values.fill(base)
  let onset = -1
  for (const part of kind.split('+')) {
    if (part === 'leak' || part === 'stairs' || part === 'accelerating') {
      onset = addLeak(values, draw, part, 1 - base)
      if (part !== 'leak' && draw.chance(0.5)) patterns.saw(values, draw)
    } else patterns[part](values, draw)
  }
  if (!/warm|cache/.test(kind) && draw.chance(0.3)) {
    const height = draw.between(0.01, 0.08)
    const tau = draw.between(60, 600)
    addOver(values, (t) => -height * Math.exp(-t / tau))
  }
  return finish(kind, values, draw, noise, onset, SHOWN)
}

/** Six hours in which something that looks healthy begins to fill the device within 10 to 90 minutes. */
export function fastLeak(seed) {
  const draw = random(seed ^ 0x5bd1e995)
  const calm = day(['flat', 'saw', 'periodic', 'bursty'][seed % 4], seed)
  const values = Float64Array.from(calm.values.subarray(0, 2160))
  const onset = draw.integer(400, 1200)
  const rate = (1 - values[onset]) / (draw.logBetween(10, 90) * 60)
  for (let i = onset; i < values.length; i++) values[i] += rate * (i - onset) * INTERVAL
  return finish('fast', values, null, 0, onset, values.length)
}

function finish(kind, values, draw, noise, onset, shown) {
  let full = -1
  for (let i = 0; i < values.length && full < 0; i++) {
    const noisy = values[i] + (draw === null ? 0 : noise * draw.normal())
    values[i] = Math.max(0, Math.round(noisy / QUANTUM) * QUANTUM)
    if (values[i] >= 1) full = i
  }
  const end = full < 0 ? shown : Math.min(full, shown)
  return { kind, values: values.subarray(0, end), onset, full, fills: full >= 0 && full <= shown, interval: INTERVAL }
}

/** `each` days of every kind and 3 × `each` fast leaks, from one seed. */
export function corpus(seed, each) {
  const series = []
  ;[...BENIGN, ...LEAKING].forEach((kind, index) => {
    for (let i = 0; i < each; i++) series.push(day(kind, seed * 1_000_003 + index * 7919 + i * 104_729))
  })
  return series
}

export function fastCorpus(seed, each) {
  return Array.from({ length: each }, (_, i) => fastLeak(seed * 2_000_003 + i * 15_485_863))
}
