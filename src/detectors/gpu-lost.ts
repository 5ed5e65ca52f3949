/** A GPU that fell off the bus, needs a reset, cannot be read, or is not reported anymore. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatDuration } from '../core/format.ts'
import type { Finding, GpuSample, Severity } from '../core/model.ts'
import { UTILIZATION_CHART } from './charts.ts'
import { both, type FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { gpuName, subjectOfGpu, type WatchedGpu, watchGpus } from './gpu-watch.ts'
import { advance, type ObservedTime, observedTime } from './observed-time.ts'
import { held, type Span, span } from './span.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

interface Presence {
  readonly label: string
  readonly index: number | null
  /** In the observed time of all GPUs together. */
  lastMs: number
  lastSample: number
  intervalMs: number
}

const GPU_CAP = 256
const FORGET_MS = 3_600_000
const SWEEP_MS = 5000
const RECOVERY = ['none', 'reset the GPU', 'reboot the server', 'drain peer-to-peer traffic', 'drain the GPU and reset it']

export const gpuLost: DetectorKind<Thresholds<'gpuLost'>> = {
  name: 'gpu_lost',
  about: 'A GPU fell off the bus, needs a reset, cannot be read, or is not reported anymore.',
  severities: ['warning', 'critical'],
  inputs: ['gpu', 'device', 'event'],
  findsAgainSeconds: 120,
  charts: [UTILIZATION_CHART],
  outlivesGpu: true,
  defaults: THRESHOLDS.gpuLost,
  create(options) {
    const present = new BoundedMap<string, Presence>(GPU_CAP)
    const time = observedTime()
    let sweptMs = 0
    let samples = 0

    /** GPUs that stopped sending samples while others still do. */
    function missing(at: number, book: FindingBook): readonly Finding[] {
      if (time.ms - sweptMs < SWEEP_MS) return NO_FINDINGS
      sweptMs = time.ms
      const findings: Finding[] = []
      for (const [id, presence] of present) {
        const silentMs = time.ms - presence.lastMs
        if (silentMs < Math.max(options.missingSeconds * 1000, 3 * presence.intervalMs)) continue
        // A clock jump makes every GPU look silent; only samples of the others show that this one is missing.
        if (samples - presence.lastSample < options.missingIntervals * present.size) continue
        const subject = subjectOf({ gpu: id, gpuIndex: presence.index })
        const key = book.key(subject, 'missing')
        if (silentMs > FORGET_MS) {
          present.delete(id)
          findings.push(...book.resolve(key, at, `GPU ${presence.label} has not been reported for an hour and counts as removed.`))
        } else if (book.due(key, at, 'warning')) findings.push(...book.raise(subject, at, absence(presence, silentMs, at), 'missing'))
      }
      return findings
    }

    function note(sample: GpuSample, gpu: WatchedGpu<Span>, book: FindingBook): readonly Finding[] {
      // MIG instances come and go with the configuration; a card without a driver goes when the driver knows its name.
      if (gpu.facts?.mig || sample.state === 'no_driver') return NO_FINDINGS
      let presence = present.get(sample.gpu)
      advance(time, sample.at)
      samples++
      presence ??= present.keep(sample.gpu, {
        label: gpu.facts?.label ?? gpu.id,
        index: gpu.facts?.index ?? null,
        lastMs: time.ms,
        lastSample: samples,
        intervalMs: 0,
      })
      const passed = time.ms - presence.lastMs
      presence.intervalMs += (passed - presence.intervalMs) / (presence.intervalMs === 0 ? 1 : 8)
      presence.lastMs = time.ms
      presence.lastSample = samples
      const gone = missing(sample.at, book)
      if (book.size === 0) return gone
      const back = book.resolve(book.key(subjectOfGpu(gpu), 'missing'), sample.at, `${gpuName(gpu)} is reported again.`)
      return both(gone, back)
    }

    return watchGpus<Span>('gpu_lost', {
      initial: span,
      sample(gpu, sample, _processes, book) {
        return both(note(sample, gpu, book), look(gpu, sample, book, options))
      },
      event(gpu, event, book) {
        const subject = subjectOfGpu(gpu)
        if (event.event === 'recovered') return book.resolve(book.key(subject), event.at, `${gpuName(gpu)} is back.`)
        if (event.event !== 'lost' && event.event !== 'gpu_unavailable') return NO_FINDINGS
        return book.raise(
          subject,
          event.at,
          draft(gpu, 'critical', `${gpuName(gpu)} is lost: ${event.message}`, { event: event.event, origin: event.origin }),
        )
      },
      extra: {
        snapshot: () => ({ present: present.saved(), time: { ...time }, sweptMs, samples }),
        restore(state) {
          const saved = state as { present: unknown; time: ObservedTime; sweptMs: number; samples: number }
          present.load(saved.present)
          Object.assign(time, saved.time)
          sweptMs = saved.sweptMs
          samples = saved.samples
        },
      },
    })
  },
}

function look(gpu: WatchedGpu<Span>, sample: GpuSample, book: FindingBook, options: Thresholds<'gpuLost'>): readonly Finding[] {
  const action = sample.recoveryAction ?? 0
  const errorMs = held(gpu.state, sample.state === 'error', gpu.time.ms)
  const severity = severityOf(sample.state, action, errorMs, options)
  if (severity === null) {
    if (book.size === 0 || sample.state !== 'ok') return NO_FINDINGS
    return book.resolve(book.key(subjectOfGpu(gpu)), sample.at, `${gpuName(gpu)} can be read again.`)
  }
  const subject = subjectOfGpu(gpu)
  if (gpu.time.ms < options.settleSeconds * 1000 || !book.due(book.key(subject), sample.at, severity)) return NO_FINDINGS
  const reason = sample.stateReason === null ? '' : ` (${sample.stateReason})`
  const evidence = { state: sample.state, reason: sample.stateReason, recovery_action: sample.recoveryAction }
  return book.raise(subject, sample.at, draft(gpu, severity, `${gpuName(gpu)} ${condition(sample, action)}${reason}.`, evidence))
}

function severityOf(state: GpuSample['state'], action: number, errorMs: number, options: Thresholds<'gpuLost'>): Severity | null {
  if (state === 'lost' || state === 'reset_required') return 'critical'
  if (state === 'error') return errorMs >= options.errorHoldSeconds * 1000 ? 'warning' : null
  return action > 0 ? 'warning' : null
}

function condition(sample: GpuSample, action: number): string {
  if (sample.state === 'lost') return 'has fallen off the bus'
  if (sample.state === 'reset_required') return 'must be reset before it can be used again'
  if (sample.state === 'error') return 'cannot be read'
  return `asks for recovery: ${RECOVERY[action] ?? `action ${action}`}`
}

function draft(gpu: WatchedGpu<unknown>, severity: Severity, message: string, evidence: Record<string, string | number | null>) {
  const advice =
    severity === 'critical'
      ? `Move the jobs off ${gpuName(gpu)}. Reset it or reboot the server, and check power and seating.`
      : 'Check the kernel log (dmesg) for the reason.'
  return { severity, message, evidence, confidence: 1, advice: [advice] }
}

function absence(presence: Presence, silentMs: number, at: number) {
  return {
    severity: 'warning' as const,
    since: at - silentMs,
    message: `GPU ${presence.label} has not been reported for ${formatDuration(silentMs)} while other GPUs are.`,
    evidence: { silent_seconds: Math.round(silentMs / 1000), usual_interval_seconds: Math.round(presence.intervalMs) / 1000 },
    confidence: 0.8,
    advice: ['Check whether the driver still lists it (nvidia-smi -L), and the kernel log for XID 79.'],
  }
}
