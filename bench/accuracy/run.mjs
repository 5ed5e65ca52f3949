// `npm run accuracy`: every figure of docs/accuracy.md. Options: --each N (days of each kind, 20), --seeds 101,102 (reporting), --json FILE,
// --only synthetic,cluster,serving,stragglers,loss,traces,healthy,cost.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { scoreCluster } from './cluster-score.mjs'
import { cost } from './cost.mjs'
import { corpus, fastCorpus } from './generator.mjs'
import { healthy } from './healthy.mjs'
import { clean, troubles } from './loss.mjs'
import { hangs, pauses } from './pauses.mjs'
import { serving } from './serving.mjs'
import { stragglers } from './stragglers.mjs'
import { METHODS, measure } from './synthetic.mjs'
import { itemsOf, judge, replay, traceNames, truthOf } from './traces.mjs'
import { VARIANTS, vary } from './variants.mjs'

const { values: options } = parseArgs({
  options: {
    each: { type: 'string', default: '20' },
    seeds: { type: 'string', default: '101,102' },
    json: { type: 'string' },
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: 'synthetic,cluster,serving,stragglers,loss,traces,healthy,cost' },
  },
})
const each = Number(options.quick ? 4 : options.each)
const seeds = options.seeds.split(',').map(Number)
const report = { seeds, each, synthetic: {}, cluster: [], loss: {}, traces: [], variants: [], healthy: {}, failed: [] }

function check(what, good, got) {
  if (!good) report.failed.push(`${what}: ${got}`)
  return good ? '' : ' ✗'
}

function synthetic() {
  console.log(`Synthetic days, seeds ${seeds.join(', ')}, ${each} of each kind and seed`)
  const series = seeds.flatMap((seed) => [...corpus(seed, each), ...fastCorpus(seed, 3 * each)])
  for (const [rate, scale] of [
    ['every 10 s', 1],
    ['1 Hz, time ÷ 10', 10],
    ['10 Hz, time ÷ 100', 100],
  ]) {
    const table = {}
    for (const method of Object.keys(METHODS)) {
      if (scale !== 1 && method !== 'gpuwarden') continue
      const got = measure(method, series, scale)
      const ours = method === 'gpuwarden'
      const mark = (name, good) => (ours ? check(`${rate}: ${name}`, good, got[name]) : '')
      table[method] = {
        'leak precision': got.leakPrecision.toFixed(3) + mark('leakPrecision', got.leakPrecision >= 0.97),
        recall: got.leakRecall.toFixed(3) + mark('leakRecall', got.leakRecall >= 0.96),
        'false/day': got.leakFalsePerDay.toFixed(3) + mark('leakFalsePerDay', got.leakFalsePerDay <= 0.05),
        'OOM missed': got.oomMissed.toFixed(3) + mark('oomMissed', got.oomMissed <= 0.02),
        'lead min': `${got.oomMedianLeadMinutes?.toFixed(0) ?? '–'}${mark('oomMedianLeadMinutes', got.oomMedianLeadMinutes >= 55)}`,
        'OOM false/day': got.oomFalsePerDay.toFixed(3) + mark('oomFalsePerDay', got.oomFalsePerDay <= 0.05),
        '90 % covers':
          (got.intervalCoverage?.toFixed(3) ?? '–') +
          mark('intervalCoverage', got.intervalCoverage >= 0.87 && got.intervalCoverage <= 0.93),
      }
      report.synthetic[`${rate} ${method}`] = got
    }
    console.log(`\n${rate} (${series.length} series, ${series.filter((one) => one.fills).length} run full)`)
    console.table(table)
  }
}

/** Goals that are known to be missed (docs/accuracy.md): printed as missed, but no reason to fail. */
const KNOWN_MISSED = ['OOM by leak: coverage']

/** The first seed of the cluster that was not used for tuning. */
const UNSEEN = 301

function clusters() {
  const worlds = Array.from({ length: options.quick ? 2 : 12 }, (_, i) => UNSEEN + i)
  const servers = options.quick ? 10 : 20
  console.log(`\nMemory of an inference cluster, seeds ${worlds.join(', ')}, ${servers} servers each, 22.8 h at one reading per 57 s`)
  report.cluster = scoreCluster(worlds, servers)
  const table = {}
  for (const { row, figure, value, least, most, goal, met } of report.cluster) {
    const text = (number) => number.toFixed(figure.endsWith('Minutes') ? 0 : 3)
    const known = KNOWN_MISSED.includes(`${row}: ${figure}`)
    table[`${row}: ${figure}`] = {
      measured: text(value),
      'one seed': `${text(least)}–${text(most)}`,
      goal: goal ?? '–',
      met: met === null ? '–' : met ? 'yes' : `goal missed${known ? ' (known)' : ''}`,
    }
    // A few servers show that it runs, not how well.
    if (met !== null && !known && !options.quick) check(`cluster, ${row}: ${figure}`, met, text(value))
  }
  console.table(table)
  console.log(`\nThe same by detectors.sensitivity, seeds ${worlds.slice(0, 6).join(', ')}`)
  const rows = {}
  for (const sensitivity of ['low', 'normal', 'high']) {
    const got = Object.fromEntries(
      scoreCluster(worlds.slice(0, 6), servers, sensitivity).map((one) => [`${one.row}: ${one.figure}`, one.value]),
    )
    const shown = [
      'leak: found',
      'leak: falsePerDay',
      'leak, growth that ends by itself: falsePerDay',
      'OOM by leak: missed',
      'OOM by leak: falsePerDay',
    ]
    rows[sensitivity] = Object.fromEntries(shown.map((name) => [name, got[name].toFixed(3)]))
  }
  console.table(rows)
  report.sensitivity = rows
}

function serves() {
  const worlds = Array.from({ length: options.quick ? 1 : 6 }, (_, i) => seeds[0] + i)
  const [days, interval] = options.quick ? [2, 30] : [7, 10]
  console.log(`\nA model server that is well, seeds ${worlds.join(', ')}, ${days} days each, one sample every ${interval} s`)
  const got = serving(worlds, days, interval)
  console.table(got.rows)
  // Known to be missed on the first morning of some servers (docs/accuracy.md), so no reason to fail.
  console.log(`${got.loud} warnings in ${got.days} days (goal: 0${got.loud > 0 ? ', missed (known)' : ''})`)
  report.serving = got
}

function slowRanks() {
  const each = options.quick ? 5 : 60
  console.log(`\nRanks of a run, seeds ${seeds.join(', ')}, ${each} jobs of each kind and seed, 400 steps`)
  const got = stragglers(seeds, each)
  console.table(got.rows)
  console.log(
    `${got.per10000.toFixed(1)} of 10,000 workers named without reason (goal: ≤ 1; ${got.workers} workers); a fifth slower: ${got.inFour.toFixed(2)} within 4 steps, median ${got.medianSteps} (goal: 4)`,
  )
  check('stragglers: named without reason', got.per10000 <= 1, got.per10000)
  check('stragglers: median steps', got.medianSteps <= 4, got.medianSteps)
  report.stragglers = got
}

function losses() {
  const lossSteps = options.quick ? 10_000 : 100_000
  console.log(`\nFalse alarms on clean training curves, seeds ${seeds.join(', ')}, ${lossSteps} steps each`)
  const cleanRows = clean(seeds, lossSteps)
  console.table(cleanRows)
  const allSteps = Object.keys(cleanRows).length * seeds.length * lossSteps
  const falseAlarms = Object.values(cleanRows).reduce((sum, row) => sum + row.gpuwarden, 0)
  console.log(`${falseAlarms} in ${allSteps} steps`)
  check('clean training curves: false alarms per million steps', falseAlarms <= Math.ceil((2 * allSteps) / 1e6), falseAlarms)
  console.log('\nTraining curves that leave their course')
  const lossRows = troubles(seeds, options.quick ? 50 : 200)
  console.table(lossRows)
  for (const [name, row] of Object.entries(lossRows))
    check(`loss, ${name}: found in time`, row.goal === null || row['in time'] >= row.goal, row['in time'])
  report.loss = { clean: cleanRows, troubles: lossRows, steps: allSteps }
}

/** What the recordings ask for; from the GPU alone a filling cache may be a warning, never critical. */
function judged(name, alone, variant, got, truth, speed) {
  const what = `${name}, ${alone ? 'GPU alone' : 'with training'}, ${variant}`
  check(`${what}: not found`, got.missing.length === 0, got.missing.join())
  const cache = name === 'warmup_plateau' && alone
  const wrong = cache ? got.unexpected.filter((one) => one.endsWith('critical')) : got.unexpected
  check(`${what}: invented`, wrong.length === 0, wrong.join())
  const asked = (detector) => truth.expect.includes(detector)
  if (asked('stall'))
    check(`${what}: stall late`, got.stallLateSeconds !== null && got.stallLateSeconds <= 1.9 + 0.1 / speed, got.stallLateSeconds)
  if (asked('loss_nan')) check(`${what}: NaN late`, got.nanLateSteps === 0, got.nanLateSteps)
  if (asked('intruder')) check(`${what}: intruder late`, got.intruderSamples !== null && got.intruderSamples <= 2, got.intruderSamples)
  if (!asked('oom')) return
  check(`${what}: leak late`, got.leakShare !== null && got.leakShare <= 0.25, got.leakShare)
  check(`${what}: OOM lead`, got.oomLeadSeconds >= (name === 'leak_graph' ? 20 : 10) / speed, got.oomLeadSeconds)
  check(`${what}: coverage`, got.coverage >= 0.85, got.coverage)
}

function soon({ stallLateSeconds, nanLateSteps, intruderSamples }) {
  if (stallLateSeconds !== null) return `10 steps + ${stallLateSeconds.toFixed(1)} s`
  if (nanLateSteps !== null) return `${nanLateSteps} steps`
  return intruderSamples === null ? '–' : `${intruderSamples} samples`
}

async function traces() {
  const recordings = new Map()
  for (const alone of [false, true]) for (const name of traceNames()) recordings.set(`${name} ${alone}`, await itemsOf(name, alone))
  const rows = {}
  for (const variant of Object.keys(VARIANTS))
    for (const alone of [false, true])
      for (const name of traceNames()) {
        const { items, truth, speed, informative } = vary(variant, 7, recordings.get(`${name} ${alone}`), truthOf(name, alone))
        const got = judge(replay(items), truth, items)
        if (!informative) judged(name, alone, variant, got, truth, speed)
        report.variants.push({ name, alone, variant, ...got })
        if (variant === 'as recorded')
          rows[`${name}${alone ? ', GPU alone' : ''}`] = {
            expected: truth.expect.join() || '–',
            'not found': got.missing.join() || '–',
            'also said': got.unexpected.join() || '–',
            'leak after': got.leakShare === null ? '–' : `${Math.round(got.leakShare * 100)} %`,
            'OOM lead': got.oomLeadSeconds === null ? '–' : `${got.oomLeadSeconds.toFixed(0)} s`,
            'found late': soon(got),
            covered: got.coverage === null ? '–' : got.coverage.toFixed(2),
            statements: got.statements,
          }
      }
  console.log('\nRecorded runs')
  console.table(rows)
}

async function allIsWell() {
  const hours = options.quick ? 0.25 : 1
  const worlds = Array.from({ length: options.quick ? 2 : 10 }, (_, i) => seeds[0] + i)
  console.log(`\nTrainings that are well, seeds ${worlds.join(', ')}, ${hours} h each`)
  const { rows, warnings } = await healthy(worlds, hours)
  console.table(rows)
  check('trainings that are well: warnings', warnings.length === 0, `\n    ${warnings.join('\n    ')}`)
  console.log('\nTrainings that rest, three hours each, and what is said of that')
  const rests = pauses(worlds, 3)
  console.table(rests)
  for (const [name, row] of Object.entries(rests))
    check(`${name}: warnings a run`, row.warnings <= (row.isTold ? 0 : 1.5) * worlds.length, row.warnings)
  console.log('\nTrainings that hang, and how soon that is said')
  const hung = hangs(worlds)
  console.table(hung)
  report.healthy = { rows, warnings, rests, hung }
}

function costs() {
  const spent = cost(options.quick ? 60_000 : 400_000)
  console.log('\nCost')
  console.table(spent.rows)
  const [micros, ofAny] = [spent.micros.toFixed(2), spent.microsOfAny.toFixed(2)]
  console.log(
    `${ofAny} µs per sample (${micros} µs per sample of the GPU with what comes between) and ${spent.kilobytes.toFixed(0)} KB of state (as JSON); goals: 5 µs on a quiet machine, 120 KB`,
  )
  check('cost: state of one GPU in KB', spent.kilobytes <= 120, spent.kilobytes)
  report.cost = spent
}

const PARTS = {
  synthetic,
  cluster: clusters,
  serving: serves,
  stragglers: slowRanks,
  loss: losses,
  traces,
  healthy: allIsWell,
  cost: costs,
}
for (const part of options.only.split(',')) {
  if (!PARTS[part]) throw new Error(`--only: expected ${Object.keys(PARTS).join(', ')}; got "${part}"`)
  await PARTS[part]()
}
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 1)}\n`)
if (report.failed.length > 0) {
  console.log(`\nNot reached:\n  ${report.failed.join('\n  ')}`)
  process.exitCode = 1
}
