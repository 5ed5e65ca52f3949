/** Memory errors: any new uncorrected one, or very many corrected ones. Errors from before the agent started are not new. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatCount } from '../core/format.ts'
import type { GpuSample, Reading, Severity } from '../core/model.ts'
import { type FindingBook, NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, type WatchedGpu, watchGpus } from './gpu-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

interface EccState {
  uncorrected: Reading
  corrected: Reading
  newUncorrected: number
  /** Observed ms of the last new uncorrected error; -1: none. */
  uncorrectedMs: number
  /** Recent corrected errors: a count that decays with the window. */
  storm: number
  stormMs: number
}

export const ecc: DetectorKind<Thresholds<'ecc'>> = {
  name: 'ecc',
  about: 'A GPU has new uncorrectable memory errors, or corrects very many.',
  severities: ['warning', 'critical'],
  inputs: ['gpu', 'device', 'event'],
  charts: [{ of: 'gpu', field: 'eccUncorrectedVolatileCount', title: 'Uncorrected ECC errors', unit: 'count' }],
  defaults: THRESHOLDS.ecc,
  create: (options) =>
    watchGpus<EccState>('ecc', {
      initial: () => ({ uncorrected: null, corrected: null, newUncorrected: 0, uncorrectedMs: -1, storm: 0, stormMs: 0 }),
      sample(gpu, sample, _processes, book) {
        const { state, time } = gpu
        const fresh = growth(state.uncorrected, total(sample.eccUncorrectedVolatileCount, sample.eccUncorrectedAggregateCount))
        state.uncorrected = total(sample.eccUncorrectedVolatileCount, sample.eccUncorrectedAggregateCount) ?? state.uncorrected
        const corrected = total(sample.eccCorrectedVolatileCount, sample.eccCorrectedAggregateCount)
        const windowMs = options.correctedWindowMinutes * 60_000
        if (state.storm > 0) state.storm *= Math.exp(-(time.ms - state.stormMs) / windowMs)
        if (state.storm < 0.5) state.storm = 0
        state.storm += growth(state.corrected, corrected)
        state.stormMs = time.ms
        state.corrected = corrected ?? state.corrected
        return fresh > 0 ? uncorrected(gpu, sample.at, fresh, book) : verdict(gpu, sample, book, options)
      },
      event: (gpu, event, book) => (event.event === 'ecc_uncorrected' ? uncorrected(gpu, event.at, 1, book) : NO_FINDINGS),
    }),
}

/** The driver's volatile counter restarts at zero, the aggregate does not: the larger one lasts. */
function total(volatileCount: Reading, aggregateCount: Reading): Reading {
  if (volatileCount === null) return aggregateCount
  return aggregateCount === null ? volatileCount : Math.max(volatileCount, aggregateCount)
}

function growth(before: Reading, now: Reading): number {
  return before === null || now === null ? 0 : Math.max(0, now - before)
}

function uncorrected(gpu: WatchedGpu<EccState>, at: number, count: number, book: FindingBook) {
  gpu.state.newUncorrected += count
  gpu.state.uncorrectedMs = gpu.time.ms
  return book.raise(subjectOfGpu(gpu), at, {
    severity: 'critical',
    message: `${gpuName(gpu)} had ${formatCount(gpu.state.newUncorrected, 'uncorrectable memory error')}: results from it may be wrong.`,
    evidence: { uncorrected_new: gpu.state.newUncorrected, uncorrected_total: gpu.state.uncorrected },
    confidence: 1,
    advice: ['Restart the jobs on this GPU from their last checkpoints.', 'Reset the GPU; replace it if errors return.'],
  })
}

function verdict(gpu: WatchedGpu<EccState>, sample: GpuSample, book: FindingBook, options: Thresholds<'ecc'>) {
  const { state, time } = gpu
  const stormy = state.storm >= options.correctedCount || (state.storm >= options.correctedCount / 2 && book.size > 0)
  const recent = state.uncorrectedMs >= 0 && time.ms - state.uncorrectedMs < options.activeMinutes * 60_000
  if (!recent && state.uncorrectedMs >= 0) {
    state.uncorrectedMs = -1
    state.newUncorrected = 0
  }
  if (!stormy && book.size === 0) return NO_FINDINGS
  const subject = subjectOfGpu(gpu)
  const key = book.key(subject)
  const severity: Severity | null = recent ? 'critical' : stormy ? 'warning' : null
  if (severity === null) return book.resolve(key, sample.at, `No new memory errors on ${gpuName(gpu)}.`)
  if (severity === 'critical' || (!book.has(key) && state.storm < options.correctedCount) || !book.due(key, sample.at, severity))
    return NO_FINDINGS
  return book.raise(subject, sample.at, {
    severity,
    message: `${gpuName(gpu)} corrected about ${Math.round(state.storm)} memory errors in the last ${options.correctedWindowMinutes} min.`,
    evidence: { corrected_recent: Math.round(state.storm), corrected_total: state.corrected },
    confidence: 0.9,
    advice: ['Results are still correct, but a memory chip may be failing: plan to drain and test this GPU.'],
  })
}
