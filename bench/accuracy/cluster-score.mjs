// Runs the real detectors over the made-up cluster and counts, seed by seed: leaks found and invented, ends missed, early and false.
import { cluster, INTERVAL } from './cluster.mjs'
import { Detectors, START } from './synthetic.mjs'

const HOUR = 3600
const DAY = 86_400
/** A look at the forecast every sixth sample; an alarm is an end within the hour, three looks in a row. */
const LOOK = 6
const LOOKS = 3
/** After a false forecast this many samples (5.7 hours) do not count again. */
const FORGIVEN = 360

const plain = (one) => one.event === null
const ofEvent = (event) => (one) => plain(one) || one.event === event
const grows = (one) => one.event === 'cache' || one.event === 'demand'
const atMost = (goal) => ({ text: `≤ ${goal}`, met: (value) => value <= goal })
const atLeast = (goal) => ({ text: `≥ ${goal}`, met: (value) => value >= goal })
const between = (low, high) => ({ text: `${low}–${high}`, met: (value) => value >= low && value <= high })
const named = (name, event) => (one) => one.name === name && ofEvent(event)(one)

/** Which series a row is of, and of each figure its goal, or null where there is none. */
const ROWS = [
  ['leak', 'leak', ofEvent('leak'), { falsePerDay: atMost(0.02), found: atLeast(0.85), delayMinutes: null }],
  ['leak, busy', 'leak', named('busy', 'leak'), { falsePerDay: null, found: null }],
  ['leak, tiered', 'leak', named('tiered', 'leak'), { falsePerDay: null, found: null }],
  ['leak, growth that ends by itself', 'leak', grows, { falsePerDay: atMost(0.1) }],
  [
    'OOM by leak',
    'oom',
    ofEvent('end by leak'),
    { missed: atMost(0.15), falsePerDay: atMost(0.1), coverage: between(0.87, 0.93), leadMinutes: null },
  ],
  ['OOM by steps', 'oom', ofEvent('end by steps'), { missed: null, coverage: null }],
  ['OOM by requests', 'oom', ofEvent('end by requests'), { missed: null, coverage: null }],
  ['OOM, growth that ends by itself', 'oom', grows, { falsePerDay: null }],
]

/** One series through both detectors. A leak that is only information is no alarm. */
function follow({ values, onset, leaks, full, fills }, sensitivity) {
  const detectors = new Detectors(sensitivity)
  const leak = { foundAt: -1, falseAlarms: 0 }
  const oom = { firstAt: -1, falseAlarms: 0, asked: 0, covered: 0 }
  let [leakQuiet, oomQuiet, streak] = [-1, -1, 0]
  values.forEach((value, i) => {
    const at = START + i * INTERVAL * 1000
    const { warns, seconds, interval } = detectors.push(value, at)
    if (warns && leaks && i >= onset && leak.foundAt < 0) leak.foundAt = i
    if (warns && !leaks && i >= leakQuiet) {
      leak.falseAlarms++
      leakQuiet = i + HOUR / INTERVAL
    }
    const left = full >= 0 ? (full - i) * INTERVAL : Number.POSITIVE_INFINITY
    if (interval !== null && fills && i % 30 === 0 && i >= onset && left < 8 * HOUR) {
      oom.asked++
      if (at + left * 1000 >= interval[0] && at + left * 1000 <= interval[1]) oom.covered++
    }
    if (i % LOOK !== 0) return
    streak = seconds <= HOUR ? streak + 1 : 0
    if (streak < LOOKS) return
    if (left <= 3 * HOUR) oom.firstAt = oom.firstAt < 0 ? i : oom.firstAt
    else if (i >= oomQuiet) {
      oom.falseAlarms++
      oomQuiet = i + FORGIVEN
    }
  })
  return { leak, oom }
}

const sum = (list, of) => list.reduce((total, one) => total + of(one), 0)
const median = (list) => (list.length === 0 ? Number.NaN : list.sort((a, b) => a - b)[list.length >> 1])
const days = (series) => sum(series, ({ one }) => one.values.length * INTERVAL) / DAY

function leakFigures(series) {
  const benign = series.filter(({ one }) => !one.leaks)
  const leaking = series.filter(({ one }) => one.leaks)
  const found = leaking.filter(({ leak }) => leak.foundAt >= 0)
  return {
    falsePerDay: sum(benign, ({ leak }) => leak.falseAlarms) / days(benign),
    found: found.length / leaking.length,
    delayMinutes: median(found.map(({ one, leak }) => ((leak.foundAt - one.onset) * INTERVAL) / 60)),
  }
}

function oomFigures(series) {
  const ends = series.filter(({ one }) => one.fills)
  const foretold = ends.filter(({ oom }) => oom.firstAt >= 0)
  return {
    missed: 1 - foretold.length / ends.length,
    leadMinutes: median(foretold.map(({ one, oom }) => ((one.full - oom.firstAt) * INTERVAL) / 60)),
    falsePerDay: sum(series, ({ oom }) => oom.falseAlarms) / days(series),
    coverage: sum(series, ({ oom }) => oom.covered) / sum(series, ({ oom }) => oom.asked),
  }
}

const FIGURES = { leak: leakFigures, oom: oomFigures }

/** One entry per figure: over all seeds together, the least and most of one seed, its goal (or null) and whether it is met. */
export function scoreCluster(seeds, each, sensitivity = 'normal') {
  const bySeed = seeds.map((seed) => cluster(seed, each).map((one) => ({ one, ...follow(one, sensitivity) })))
  return ROWS.flatMap(([row, task, belongs, goals]) => {
    const figures = (series) => FIGURES[task](series.filter(({ one }) => belongs(one)))
    const all = figures(bySeed.flat())
    const single = bySeed.map(figures)
    return Object.entries(goals).map(([figure, goal]) => {
      const values = single.map((one) => one[figure]).filter((value) => !Number.isNaN(value))
      const value = all[figure]
      return {
        row,
        figure,
        value,
        least: Math.min(...values),
        most: Math.max(...values),
        goal: goal?.text ?? null,
        met: goal?.met(value) ?? null,
      }
    })
  })
}
