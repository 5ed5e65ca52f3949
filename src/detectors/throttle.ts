/** Clocks held down by heat or by the card's own protection; a software power cap is normal under load and only information. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatMegahertz } from '../core/format.ts'
import { CLOCK_REASON } from '../core/gpu-words.ts'
import type { GpuSample, Severity } from '../core/model.ts'
import { CLOCK_CHART } from './charts.ts'
import { NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, watchGpus } from './gpu-watch.ts'
import { type Bucket, bucket, pour } from './leaky-bucket.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

interface ThrottleState {
  readonly heat: Bucket
  readonly powerCap: Bucket
}

const THERMAL = CLOCK_REASON.softwareThermal | CLOCK_REASON.hardwareThermal

export const throttle: DetectorKind<Thresholds<'throttle'>> = {
  name: 'throttle',
  about: 'The clocks of a GPU are slowed down by heat or by its own protection; a software power cap is information only.',
  severities: ['info', 'warning'],
  inputs: ['gpu', 'device'],
  findsAgainSeconds: 600,
  patienceSeconds: 300,
  charts: [CLOCK_CHART],
  defaults: THRESHOLDS.throttle,
  create: (options) =>
    watchGpus<ThrottleState>('throttle', {
      initial: () => ({ heat: bucket(), powerCap: bucket() }),
      sample(gpu, sample, _processes, book) {
        const reasons = sample.clockEventReasons
        if (reasons === null) return NO_FINDINGS
        // The power brake sets the hardware slowdown bit, too; power_brake reports that.
        const slowdown = (reasons & CLOCK_REASON.hardwareSlowdown) !== 0 && (reasons & CLOCK_REASON.hardwarePowerBrake) === 0
        const heatMs = pour(gpu.state.heat, slowdown || (reasons & THERMAL) !== 0, gpu.time.ms, options.holdSeconds * 1000)
        const capMs = pour(
          gpu.state.powerCap,
          (reasons & CLOCK_REASON.softwarePowerCap) !== 0,
          gpu.time.ms,
          options.powerCapHoldSeconds * 1000,
        )
        if (heatMs === 0 && capMs === 0 && book.size === 0) return NO_FINDINGS
        const subject = subjectOfGpu(gpu)
        const key = book.key(subject)
        const open = book.get(key)?.severity ?? null
        const severity = severityOf(heatMs, capMs, open, options)
        if (severity === null)
          return open === null ? NO_FINDINGS : book.resolve(key, sample.at, `${gpuName(gpu)} runs at full clocks again.`)
        if (!book.due(key, sample.at, severity)) return NO_FINDINGS
        return book.raise(subject, sample.at, {
          severity,
          since: sample.at - (severity === 'warning' ? heatMs : capMs),
          message: `${gpuName(gpu)} is slowed down by ${causes(reasons, severity)}: SM clock ${clock(sample)}.`,
          evidence: {
            clock_event_reasons: reasons,
            sm_clock_hertz: sample.smClockHertz,
            temperature_celsius: sample.temperatureCelsius,
            power_watts: sample.powerWatts,
          },
          confidence: severity === 'warning' ? 0.95 : 0.8,
          advice:
            severity === 'warning' ? ['Check the cooling and power supply of this card; training on it is slower than it could be.'] : [],
        })
      },
    }),
}

/** Starts when the bucket is full, ends when it is empty. */
function severityOf(heatMs: number, capMs: number, open: Severity | null, options: Thresholds<'throttle'>): Severity | null {
  if (heatMs >= options.holdSeconds * 1000 || (open === 'warning' && heatMs > 0)) return 'warning'
  return capMs >= options.powerCapHoldSeconds * 1000 || (open !== null && capMs > 0) ? 'info' : null
}

function causes(reasons: number, severity: Severity): string {
  if (severity === 'info') return 'its power limit, which is normal under full load'
  const named: string[] = []
  if (reasons & CLOCK_REASON.hardwareThermal) named.push('heat (hardware protection)')
  if (reasons & CLOCK_REASON.softwareThermal) named.push('heat (driver)')
  if (reasons & CLOCK_REASON.hardwareSlowdown) named.push('the hardware slowdown signal')
  return named.length === 0 ? 'heat, on and off' : named.join(' and ')
}

function clock(sample: GpuSample): string {
  return sample.smClockHertz === null ? 'unknown' : formatMegahertz(sample.smClockHertz)
}
