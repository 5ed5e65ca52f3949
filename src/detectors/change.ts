/** Memory, utilization, temperature or power of one GPU changed more than ever before. */
import type { Detector, DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import { formatDuration } from '../core/format.ts'
import { RecordRatio, type RecordRatioOptions, type RecordRatioState } from '../core/memory/record-ratio.ts'
import type { Finding, GpuInfo, GpuSample, Reading } from '../core/model.ts'
import { type Abnormal, CHANGE_FIELDS, type ChangeField, changeDraft } from './change-fields.ts'
import { MEMORY_CHART } from './charts.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

const GPU_CAP = 64
const LATE_MS = 5000
/** After such a gap in the samples a different value is not a sudden change. */
const HOLE_MS = 600_000
const HOLE_INTERVALS = 10
/** Shares of the change: below BACK the reading is back, above AWAY (on average) it has stayed away. */
const BACK = 0.15
const AWAY = 0.5
const HALF_MINUTE_MS = 30_000

interface Watched {
  label: string
  index: number
  lastAt: number
  /** Usual time between samples; 0 before the second one. */
  intervalMs: number
  totalBytes: Reading
  /** Null until the first list. */
  pids: readonly number[] | null
  /** When a process last came or went. */
  turnoverAt: number
  readonly ratios: readonly RecordRatio[]
  abnormal: (Abnormal | null)[]
}

type SavedGpu = Omit<Watched, 'ratios'> & { readonly ratios: readonly RecordRatioState[] }

interface Saved {
  readonly gpus: readonly (readonly [string, SavedGpu])[]
  readonly findings: unknown
}

const WINDOW = 48
/** Long memory, so that what training does every few hours is not new each time; its first minutes do not count. */
const WINDOWS: Partial<RecordRatioOptions> = { window: WINDOW, warmup: 150, warmupMs: 120_000, rest: 120, halfLifeMs: 4 * 3_600_000 }

class ChangeDetector implements Detector {
  readonly #options: Thresholds<'change'>
  readonly #book = new FindingBook('change')
  readonly #gpus = new Map<string, Watched>()

  constructor(options: Thresholds<'change'>) {
    this.#options = options
  }

  accept(input: DetectorInput): readonly Finding[] {
    if (input.type === 'device') this.#device(input.device)
    return input.type === 'gpu' ? this.#sample(input.sample) : NO_FINDINGS
  }

  snapshot(): unknown {
    const saved: Saved = {
      gpus: [...this.#gpus].map(
        ([id, gpu]) => [id, { ...structuredClone({ ...gpu, ratios: [] }), ratios: gpu.ratios.map((one) => one.snapshot()) }] as const,
      ),
      findings: this.#book.snapshot(),
    }
    return saved
  }

  restore(state: unknown): void {
    const saved = structuredClone(state) as Saved
    this.#gpus.clear()
    for (const [id, one] of saved.gpus) {
      const ratios = newRatios()
      ratios.forEach((ratio, i) => {
        const kept = one.ratios[i]
        if (kept !== undefined) ratio.restore(kept)
      })
      this.#gpus.set(id, { ...one, ratios })
    }
    this.#book.restore(saved.findings)
  }

  #device(device: GpuInfo): void {
    const gpu = this.#gpu(device.id)
    if (gpu === null) return
    gpu.label = device.label
    gpu.index = device.index
  }

  #gpu(id: string): Watched | null {
    const known = this.#gpus.get(id)
    if (known !== undefined) return known
    if (this.#gpus.size >= GPU_CAP) return null
    const made: Watched = {
      label: id,
      index: -1,
      lastAt: -1,
      intervalMs: 0,
      totalBytes: null,
      pids: null,
      turnoverAt: -1,
      ratios: newRatios(),
      abnormal: CHANGE_FIELDS.map(() => null),
    }
    this.#gpus.set(id, made)
    return made
  }

  #sample(sample: GpuSample): readonly Finding[] {
    const gpu = this.#gpu(sample.gpu)
    const { at } = sample
    if (gpu === null || (at <= gpu.lastAt && gpu.lastAt - at <= LATE_MS)) return NO_FINDINGS
    if (at < gpu.lastAt) gpu.turnoverAt = Math.min(gpu.turnoverAt, at)
    this.#noteProcesses(gpu, sample)
    let findings = this.#rebase(gpu, sample)
    gpu.lastAt = at
    for (let i = 0; i < CHANGE_FIELDS.length; i++) {
      const field = CHANGE_FIELDS[i]
      const ratio = gpu.ratios[i]
      const value = field?.read(sample) ?? null
      if (field === undefined || ratio === undefined || value === null) continue
      const past = ratio.past
      const stated = ratio.update(value, at)
      const open = gpu.abnormal[i] ?? null
      if (stated !== null && stated >= this.#options.inform)
        findings = both(findings, this.#begin(gpu, sample, i, field, stated, value, past))
      else if (open !== null) findings = both(findings, this.#goOn(gpu, sample, i, field, open, value))
    }
    return findings
  }

  /** Starts again after a gap in the samples; for memory also when its size changed (MIG). */
  #rebase(gpu: Watched, sample: GpuSample): readonly Finding[] {
    const passed = gpu.lastAt < 0 ? 0 : sample.at - gpu.lastAt
    const isHole = gpu.intervalMs > 0 && passed > Math.max(HOLE_MS, HOLE_INTERVALS * gpu.intervalMs)
    if (passed > 0 && !isHole) gpu.intervalMs += (passed - gpu.intervalMs) / (gpu.intervalMs === 0 ? 1 : 8)
    const total = sample.memoryTotalBytes
    const isResized = total !== null && gpu.totalBytes !== null && total !== gpu.totalBytes
    gpu.totalBytes = total ?? gpu.totalBytes
    if (!isHole && !isResized) return NO_FINDINGS
    let findings = NO_FINDINGS
    for (let i = 0; i < CHANGE_FIELDS.length; i++) {
      const field = CHANGE_FIELDS[i]
      if (field === undefined || (!isHole && field.name !== 'memory')) continue
      gpu.ratios[i]?.rebase()
      if ((gpu.abnormal[i] ?? null) === null) continue
      gpu.abnormal[i] = null
      const why = isHole ? `was not watched for ${formatDuration(passed)}` : 'cannot be compared: the memory size changed'
      const key = this.#book.key(subjectOf({ gpu: sample.gpu }), field.name)
      findings = both(findings, this.#book.resolve(key, sample.at, `GPU ${gpu.label}: ${field.title} ${why}.`))
    }
    return findings
  }

  #noteProcesses(gpu: Watched, sample: GpuSample): void {
    const list = sample.processes
    const before = gpu.pids
    if (list === null || (before !== null && list.length === before.length && list.every((one, i) => one.pid === before[i]))) return
    gpu.pids = list.map((one) => one.pid)
    if (before !== null) gpu.turnoverAt = sample.at
  }

  #begin(gpu: Watched, sample: GpuSample, i: number, field: ChangeField, stated: number, value: number, past: number): readonly Finding[] {
    const { at } = sample
    const open = gpu.abnormal[i] ?? null
    const reference = open?.reference ?? (Number.isNaN(past) ? value : past)
    const abnormal: Abnormal = {
      reference,
      size: Math.max(Math.abs(value - reference), field.least),
      since: open?.since ?? at,
      value,
      stated,
      changedAt: at,
      excuse: this.#excuse(gpu, at, gpu.ratios[i]?.seenMs ?? 0),
      processesChanged: this.#isTurnover(gpu, at),
      samples: 0,
      sum: 0,
      warned: open?.warned ?? false,
    }
    gpu.abnormal[i] = abnormal
    return this.#say(gpu, sample, field, abnormal, null)
  }

  /** A job that starts or ends changes everything for a known reason; so does the start of watching. */
  #excuse(gpu: Watched, at: number, seenMs: number): string | null {
    if (this.#isTurnover(gpu, at)) return `a process started or ended ${ago(at - gpu.turnoverAt)}`
    return seenMs < this.#options.settleMinutes * HALF_MINUTE_MS ? `gpuwarden has watched it for only ${formatDuration(seenMs)}` : null
  }

  #isTurnover(gpu: Watched, at: number): boolean {
    return gpu.turnoverAt >= 0 && at - gpu.turnoverAt <= this.#options.settleMinutes * HALF_MINUTE_MS
  }

  #say(gpu: Watched, sample: GpuSample, field: ChangeField, one: Abnormal, stayed: number | null): readonly Finding[] {
    const subject = subjectOf({ gpu: sample.gpu, gpuIndex: gpu.index < 0 ? null : gpu.index })
    const severity = one.warned ? 'warning' : 'info'
    return this.#book.raise(subject, sample.at, changeDraft(gpu.label, field, one, severity, stayed), field.name)
  }

  #goOn(gpu: Watched, sample: GpuSample, i: number, field: ChangeField, open: Abnormal, value: number): readonly Finding[] {
    const { at } = sample
    open.samples++
    open.sum += value
    const lasted = at - open.changedAt
    if (!open.warned && open.excuse === null && open.stated >= this.#options.alert && lasted >= this.#options.confirmSeconds * 1000) {
      const isAway = Math.abs(open.sum / open.samples - open.reference) >= AWAY * open.size
      if (isAway && Math.abs(value - open.reference) >= AWAY * open.size) {
        open.warned = true
        return this.#say(gpu, sample, field, open, lasted)
      }
    }
    return open.samples <= WINDOW ? NO_FINDINGS : this.#mayEnd(gpu, sample, i, field, open, gpu.ratios[i]?.present ?? value)
  }

  #mayEnd(gpu: Watched, sample: GpuSample, i: number, field: ChangeField, open: Abnormal, present: number): readonly Finding[] {
    const { at } = sample
    const back = Math.abs(present - open.reference) < BACK * open.size
    const settled = at - open.since >= this.#options.settleMinutes * 60_000 || at < open.since
    if (!back && !settled) return NO_FINDINGS
    gpu.abnormal[i] = null
    const key = this.#book.key(subjectOf({ gpu: sample.gpu }), field.name)
    const lasted = formatDuration(Math.max(0, at - open.since))
    const how = back
      ? `is back at ${field.words(present)} after ${lasted}`
      : `has stayed at ${field.words(present)} for ${lasted} and is taken as the new normal`
    return this.#book.resolve(key, at, `GPU ${gpu.label}: ${field.title} ${how}.`)
  }
}

function ago(ms: number): string {
  return ms < 1000 ? 'at that moment' : `${formatDuration(ms)} ago`
}

function newRatios(): RecordRatio[] {
  return CHANGE_FIELDS.map((field) => new RecordRatio({ ...WINDOWS, least: field.least }))
}

export const change: DetectorKind<Thresholds<'change'>> = {
  name: 'change',
  about: 'Memory, utilization, temperature or power of a GPU changed more than ever before.',
  severities: ['info', 'warning'],
  inputs: ['gpu', 'device'],
  charts: [MEMORY_CHART],
  defaults: THRESHOLDS.change,
  create: (options) => new ChangeDetector(options),
}
