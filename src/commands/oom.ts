import type { Config } from '../agent/config.ts'
import { EXIT } from '../core/failure.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import { oom as oomKind } from '../detectors/oom.ts'
import { checkedThreshold, DEFAULT_OOM_THRESHOLD } from '../library/oom-detector.ts'
import { isAtLeast, OomAssessment, type OomPrediction } from '../report/oom-assessment.ts'
import { oomRecord, oomWarning } from '../report/oom-warning.ts'
import { writeOut } from './output.ts'
import { devicesOf, readNumber, watchMemory } from './watch-memory.ts'

const DEFAULT_SECONDS = 10

export async function oom(config: Config, options: Record<string, unknown>): Promise<number> {
  const isMonitor = options.monitor === true
  const isJson = options.json === true
  const threshold = readNumber(options.threshold, '--threshold', DEFAULT_OOM_THRESHOLD, checkedThreshold)
  let assessment: OomAssessment | null = null
  const { isSimulated, seconds } = await watchMemory({
    config,
    options,
    defaultSeconds: isMonitor ? 0 : DEFAULT_SECONDS,
    doing: 'watching for OOM',
    kinds: [oomKind],
    observers: (print) => {
      let isFirst = true
      assessment = new OomAssessment({
        thresholdPercent: threshold,
        devices: devicesOf(config),
        onWarning: (prediction) => {
          if (!isMonitor) return
          if (isFirst && prediction.simulated && !isJson) print('These GPUs are SIMULATED.')
          isFirst = false
          print(isJson ? JSON.stringify(oomRecord(prediction)) : oomWarning(prediction))
        },
      })
      return [assessment]
    },
  })
  const worst = (assessment as OomAssessment | null)?.worst() ?? []
  if (isMonitor) return EXIT.ok
  const isInDanger = worst.some((prediction) => isAtLeast(prediction.riskLevel, 'high'))
  if (isJson) {
    const risk = worst.reduce<OomPrediction | null>(
      (best, one) => (best !== null && isAtLeast(best.riskLevel, one.riskLevel) ? best : one),
      null,
    )
    writeOut(
      `${JSON.stringify({ watched_seconds: seconds, threshold_percent: threshold, risk_level: risk?.riskLevel ?? 'low', devices: worst.map(oomRecord) }, null, 2)}\n`,
    )
  } else writeOut(`${assessmentText(worst, seconds, isSimulated)}\n`)
  return isInDanger ? EXIT.checkFailed : EXIT.ok
}

function assessmentText(predictions: readonly OomPrediction[], seconds: number, isSimulated: boolean): string {
  const lines = isSimulated ? ['These GPUs are SIMULATED.'] : []
  for (const prediction of predictions) {
    if (isAtLeast(prediction.riskLevel, 'medium')) lines.push(oomWarning(prediction))
    else
      lines.push(
        `[OK] GPU ${prediction.deviceId}: risk ${prediction.riskLevel}, ${formatPercent(prediction.currentUsagePercent === null ? null : prediction.currentUsagePercent / 100)} in use, ${prediction.predictedSeconds === null ? 'no OOM ahead' : `full in ${formatDuration(prediction.predictedSeconds * 1000)} as it looks now,`} after ${formatDuration(seconds * 1000)} of watching`,
      )
  }
  return lines.join('\n')
}
