/** Evaluates the level rules on what the hub publishes, and says so as findings, like a detector. */
import { formatDuration, formatPercent } from '../core/format.ts'
import type { AgentState, Tick } from '../core/kinds.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, Reading, Severity, SourceHealth } from '../core/model.ts'
import type { AlertRecord } from './alert-record.ts'
import { LEVEL_RULES, type LevelRule, type LevelRuleName, type Rules } from './rules.ts'

export interface LevelOptions {
  readonly rules: Rules
  readonly state: AgentState
  readonly memoryThresholdRatio: number
  /** What the engine knows of a fingerprint: which of the two thresholds counts depends on it. */
  readonly recordOf: (fingerprint: string) => AlertRecord | undefined
}

interface Watch {
  readonly name: LevelRuleName
  readonly rule: LevelRule
  readonly threshold: number
  readonly clear: number
  readonly severity: Severity | null
}

/** Often enough for rules that wait for a minute and more; samples may come ten times as often. */
const EVERY_MS = 1000
/** How often a level that stays is said again, so that its numbers are not those of the beginning. */
const REFRESH_MS = 30_000

export class Levels {
  readonly #options: LevelOptions
  readonly #watches: readonly Watch[]
  readonly #lastAt = new Map<string, number>()

  constructor(options: LevelOptions) {
    this.#options = options
    this.#watches = (Object.keys(LEVEL_RULES) as LevelRuleName[])
      .filter((name) => options.rules.isWatched(name))
      .map((name) => {
        const rule: LevelRule = LEVEL_RULES[name]
        const given = options.rules.optionsOf(name)
        const threshold = given.threshold ?? rule.threshold ?? options.memoryThresholdRatio
        return { name, rule, threshold, clear: given.clear ?? threshold - rule.gap, severity: given.severity ?? null }
      })
  }

  /** Names of the rules that are watched. */
  names(): readonly LevelRuleName[] {
    return this.#watches.map((watch) => watch.name)
  }

  tick(tick: Tick, out: Finding[]): void {
    const last = this.#lastAt.get(tick.source)
    if (last !== undefined && tick.at >= last && tick.at - last < EVERY_MS) return
    this.#lastAt.set(tick.source, tick.at)
    for (const watch of this.#watches) {
      if (watch.rule.reads === 'gpu') for (const sample of tick.gpus) this.#gpu(watch, sample, out)
      else if (watch.rule.reads === 'host' && tick.host) this.#host(watch, tick.host, out)
    }
  }

  /** Sources by their own word; a source that says nothing sends no ticks, so this is asked from time to time. */
  sources(health: readonly SourceHealth[], now: number, out: Finding[]): void {
    for (const watch of this.#watches) if (watch.rule.reads === 'source') for (const one of health) this.#source(watch, one, now, out)
  }

  #gpu(watch: Watch, sample: GpuSample, out: Finding[]): void {
    const { memoryUsedBytes: used, memoryTotalBytes: total } = sample
    if (used === null || total === null || total <= 0) return
    const value = used / total
    const print = `${watch.name}|gpu=${sample.gpu}`
    const word = this.#judge(watch, print, value, sample.at)
    if (word === null) return
    const info = this.#options.state.gpus().find((gpu) => gpu.info.id === sample.gpu)?.info
    const where = `GPU ${info?.label ?? sample.gpu}`
    const message =
      word === 'active'
        ? `${where}: ${formatPercent(value)} of its memory is in use, at or above ${formatPercent(watch.threshold)}.`
        : `${where}: memory in use is down to ${formatPercent(value)}.`
    const subject = { gpu: sample.gpu, gpuIndex: info?.index ?? null }
    const evidence = { memory_used_bytes: used, memory_total_bytes: total, memory_ratio: round(value), threshold: watch.threshold }
    out.push(this.#finding(watch, print, word, value, sample.at, subject, message, evidence))
  }

  #host(watch: Watch, sample: HostSample, out: Finding[]): void {
    const { diskFreeBytes: free, diskTotalBytes: total } = sample
    if (free === null || total === null || total <= 0) return
    const value = 1 - free / total
    const print = `${watch.name}|host=${sample.hostname}`
    const word = this.#judge(watch, print, value, sample.at)
    if (word === null) return
    const message = `The disk of the log folder is ${word === 'active' ? '' : 'down to '}${formatPercent(value)} full.`
    const evidence = { disk_free_bytes: free, disk_total_bytes: total, disk_ratio: round(value), threshold: watch.threshold }
    out.push(this.#finding(watch, print, word, value, sample.at, { host: sample.hostname }, message, evidence))
  }

  /** Only sources that call themselves well: trouble that is known is the driver_stuck detector's to say. */
  #source(watch: Watch, health: SourceHealth, now: number, out: Finding[]): void {
    const isWatched = (health.state === 'ok' || health.state === 'starting') && health.provenance !== 'replay'
    const intervals = (5 * health.intervalMs + health.deadlineMs) / 1000
    const silent = isWatched ? (now - (health.lastSampleAt ?? health.since)) / 1000 : 0
    // A source that is asked once an hour is not stale after a minute.
    const value = silent <= intervals ? 0 : silent
    const print = `${watch.name}|source=${health.source}`
    const word = this.#judge(watch, print, value, now)
    if (word === null) return
    const message =
      word === 'active'
        ? `The ${health.source} source calls itself ${health.state === 'ok' ? 'well' : 'starting'}, but has not sent a sample for ${formatDuration(silent * 1000)}.`
        : `The ${health.source} source sends samples again.`
    const evidence = { source: health.source, state: health.state, silent_seconds: Math.round(silent), threshold: watch.threshold }
    out.push(this.#finding(watch, print, word, value, now, {}, message, evidence))
  }

  /** null: nothing new to say. */
  #judge(watch: Watch, print: string, value: number, at: number): Finding['state'] | null {
    const record = this.#options.recordOf(print)
    const isOpen = record !== undefined && record.phase !== 'resolved'
    // Until it has fired, falling below the threshold ends it; after that it takes the clear threshold.
    const limit = record?.phase === 'firing' ? watch.clear : watch.threshold
    if (value >= limit) {
      const isSaid = isOpen && record.clearMs === null && !record.unconfirmed && Math.abs(at - record.finding.at) < REFRESH_MS
      return isSaid && record.finding.severity === this.#severity(watch, value) ? null : 'active'
    }
    return isOpen && record.clearMs === null ? 'resolved' : null
  }

  #severity({ severity, rule }: Watch, value: number): Severity {
    return severity ?? (rule.critical !== null && value >= rule.critical ? 'critical' : rule.severity)
  }

  #finding(
    watch: Watch,
    fingerprint: string,
    state: Finding['state'],
    value: number,
    at: number,
    subject: Partial<FindingSubject>,
    message: string,
    evidence: Readonly<Record<string, Reading | string>>,
  ): Finding {
    const record = this.#options.recordOf(fingerprint)
    const none = { gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }
    return {
      fingerprint,
      detector: watch.name,
      provenance: this.#options.state.gpus().find((view) => view.info.id === subject.gpu)?.info.provenance ?? 'live',
      subject: { host: this.#options.state.hostname, ...none, ...subject },
      severity: this.#severity(watch, value),
      state,
      at,
      since: Math.min(record && record.phase !== 'resolved' ? record.finding.since : at, at),
      message,
      evidence,
      confidence: 1,
      advice: watch.rule.advice,
      predictedAt: null,
      predictedEarliestAt: null,
      predictedLatestAt: null,
      riskLevel: null,
    }
  }
}

function round(ratio: number): number {
  return Math.round(ratio * 1e4) / 1e4
}
