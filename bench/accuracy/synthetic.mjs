// Runs the real detectors over synthetic days and counts: leaks found and invented, forecasts missed, early, false, and how often the interval held.

import { NO_READINGS } from '../../dist/core/record.js'
import { leak } from '../../dist/detectors/leak.js'
import { oom } from '../../dist/detectors/oom.js'
import { sensitivityOptions } from '../../dist/detectors/sensitivity.js'
import { MannKendall, PredictLinear, Threshold } from './baselines.mjs'

export const START = 1_760_000_000_000
const TOTAL = 80 * 1024 ** 3

/** A sample whose memory and time are set anew for each value: the detectors keep none. */
function sampleOf() {
  const sample = {
    ...NO_READINGS,
    kind: 'gpu',
    at: START,
    gpu: 'GPU-0',
    state: 'ok',
    stateReason: null,
    slowAt: null,
    processes: null,
    memoryTotalBytes: TOTAL,
  }
  return { sample, input: { type: 'gpu', sample, processes: [] } }
}

/** The two detectors on one series. `alarm` is the leak finding (`warns`: a warning or more), `seconds` the forecast that was said last. */
export class Detectors {
  constructor(sensitivity = 'normal') {
    const options = sensitivityOptions(sensitivity)
    this.leak = leak.create({ ...leak.defaults, ...options.leak })
    this.oom = oom.create({ ...oom.defaults, ...options.oom })
    this.feed = sampleOf()
    this.leaking = null
    this.said = null
  }

  push(value, at) {
    this.feed.sample.at = at
    this.feed.sample.memoryUsedBytes = value * TOTAL
    for (const finding of this.leak.accept(this.feed.input)) this.leaking = finding.state === 'active' ? finding : null
    for (const finding of this.oom.accept(this.feed.input)) this.said = finding.state === 'active' ? finding : null
    return {
      alarm: this.leaking !== null,
      warns: this.leaking !== null && this.leaking.severity !== 'info',
      seconds: this.said === null ? Number.POSITIVE_INFINITY : Math.max(0, this.said.predictedAt - at) / 1000,
      interval: this.said === null ? null : [this.said.predictedEarliestAt, this.said.predictedLatestAt],
    }
  }
}

export const METHODS = {
  gpuwarden: () => new Detectors(),
  'predict_linear 1 h': (scale) => new PredictLinear(scale),
  'Mann–Kendall + Theil–Sen': (scale) => new MannKendall(scale),
  'above 90 %': () => new Threshold(),
}

/** `scale`: by how much time is compressed; 1 is a sample every 10 s, 100 ten a second. Days are counted before compression. */
export function measure(method, series, scale) {
  const score = {
    leak: { found: 0, missed: 0, falseSeries: 0, falseAlarms: 0 },
    oom: { all: 0, missed: 0, leads: [], falseAlarms: 0, covered: 0, asked: 0 },
    days: 0,
  }
  for (const one of series) one.kind === 'fast' ? undefined : countLeak(score, one, METHODS[method](scale), scale)
  for (const one of series) countOom(score, one, METHODS[method](scale), scale)
  return summary(score, series)
}

function countLeak(score, one, subject, scale) {
  let alarm = false
  let found = false
  let early = 0
  one.values.forEach((value, i) => {
    const said = subject.push(value, START + (i * one.interval * 1000) / scale)
    if (said === undefined) return
    const leaking = one.onset >= 0 && i >= one.onset
    if (said.alarm && leaking) found = true
    if (said.alarm && !alarm && !leaking) early++
    alarm = said.alarm
  })
  if (one.onset >= 0) score.leak[found ? 'found' : 'missed']++
  if (early > 0) score.leak.falseSeries++
  score.leak.falseAlarms += early
}

const HOUR = 3600

function countOom(score, one, subject, scale) {
  let last = null
  let streak = 0
  let first = -1
  let quietUntil = -1
  one.values.forEach((value, i) => {
    const at = START + (i * one.interval * 1000) / scale
    const said = subject.push(value, at)
    if (said !== undefined) last = said
    const left = one.full >= 0 ? (one.full - i) * one.interval : Number.POSITIVE_INFINITY
    if (i % 30 === 0 && last?.interval && one.fills && i >= one.onset && left < 8 * HOUR) {
      const truth = at + (left * 1000) / scale
      score.oom.asked++
      if (truth >= last.interval[0] && truth <= last.interval[1]) score.oom.covered++
    }
    if (i % 6 !== 0) return
    streak = last !== null && last.seconds * scale <= HOUR ? streak + 1 : 0
    if (streak < 3) return
    if (left > 3 * HOUR) {
      if (i >= quietUntil) score.oom.falseAlarms++
      quietUntil = i + 360
    } else if (first < 0) first = i
  })
  score.days += (one.values.length * one.interval) / 86_400
  if (!one.fills) return
  score.oom.all++
  if (first < 0) score.oom.missed++
  else score.oom.leads.push(((one.full - first) * one.interval) / 60)
}

function summary({ leak: leaks, oom: ooms, days }, series) {
  const leads = ooms.leads.sort((a, b) => a - b)
  const leakDays = series.filter((one) => one.kind !== 'fast').reduce((sum, one) => sum + (one.values.length * one.interval) / 86_400, 0)
  return {
    leakPrecision: leaks.found / (leaks.found + leaks.falseSeries),
    leakRecall: leaks.found / (leaks.found + leaks.missed),
    leakFalsePerDay: leaks.falseAlarms / leakDays,
    ooms: ooms.all,
    oomMissed: ooms.missed / ooms.all,
    oomMedianLeadMinutes: leads[leads.length >> 1] ?? null,
    oomFalsePerDay: ooms.falseAlarms / days,
    intervalCoverage: ooms.asked === 0 ? null : ooms.covered / ooms.asked,
  }
}
