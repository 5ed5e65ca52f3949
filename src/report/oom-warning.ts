/** The printed warning that memory will run out. */
import { NOT_AVAILABLE, printable } from '../core/format.ts'
import type { OomPrediction } from './oom-assessment.ts'

export function oomWarning(prediction: OomPrediction): string {
  const { deviceId, riskLevel, currentUsagePercent: usage, predictedSeconds: seconds, confidence, recommendations } = prediction
  return [
    `[WARNING] OOM Warning: GPU ${deviceId}`,
    `   Risk Level: ${riskLevel}`,
    `   Current Usage: ${usage === null ? NOT_AVAILABLE : `${usage.toFixed(1)}%`}`,
    `   Predicted OOM Time: ${seconds === null ? 'none in sight' : `${seconds.toFixed(1)}seconds later`}`,
    `   Confidence: ${confidence.toFixed(2)}`,
    ...recommendations.map((line) => `   Recommendation: ${printable(line)}`),
  ].join('\n')
}

/** For --json and logs. */
export function oomRecord(prediction: OomPrediction) {
  return {
    timestamp: new Date(prediction.at).toISOString(),
    device_id: prediction.deviceId,
    risk_level: prediction.riskLevel,
    current_usage_percent: prediction.currentUsagePercent === null ? null : Math.round(prediction.currentUsagePercent * 100) / 100,
    predicted_seconds: prediction.predictedSeconds,
    earliest_seconds: prediction.earliestSeconds,
    latest_seconds: prediction.latestSeconds,
    confidence: prediction.confidence,
    recommendations: prediction.recommendations,
    message: prediction.message,
    run: prediction.run,
    simulated: prediction.simulated,
  }
}
