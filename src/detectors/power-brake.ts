/** The board's power brake: something outside the card (power supply, rack) told it to halve its clocks. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { CLOCK_REASON } from '../core/gpu-words.ts'
import { CLOCK_CHART } from './charts.ts'
import { NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, watchGpus } from './gpu-watch.ts'
import { type Bucket, bucket, pour } from './leaky-bucket.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

export const powerBrake: DetectorKind<Thresholds<'powerBrake'>> = {
  name: 'power_brake',
  about: 'The power supply of the server makes a GPU slow down (power brake).',
  severities: ['warning'],
  inputs: ['gpu', 'device'],
  findsAgainSeconds: 60,
  patienceSeconds: 300,
  charts: [CLOCK_CHART],
  defaults: THRESHOLDS.powerBrake,
  create: (options) =>
    watchGpus<Bucket>('power_brake', {
      initial: bucket,
      sample(gpu, sample, _processes, book) {
        const reasons = sample.clockEventReasons
        if (reasons === null) return NO_FINDINGS
        const brakedMs = pour(gpu.state, (reasons & CLOCK_REASON.hardwarePowerBrake) !== 0, gpu.time.ms, options.holdSeconds * 1000)
        if (brakedMs === 0 && book.size === 0) return NO_FINDINGS
        const subject = subjectOfGpu(gpu)
        const key = book.key(subject)
        if (brakedMs === 0) return book.resolve(key, sample.at, `The power brake of ${gpuName(gpu)} is released.`)
        const open = book.has(key)
        if ((!open && brakedMs < options.holdSeconds * 1000) || !book.due(key, sample.at, 'warning')) return NO_FINDINGS
        return book.raise(subject, sample.at, {
          severity: 'warning',
          since: sample.at - brakedMs,
          message: `${gpuName(gpu)} is slowed down by the power brake: the power supply of the server asks for it.`,
          evidence: { clock_event_reasons: reasons, power_watts: sample.powerWatts, sm_clock_hertz: sample.smClockHertz },
          confidence: 0.95,
          advice: ['Check the power supplies (one may have failed) and the power budget of the server or rack.'],
        })
      },
    }),
}
