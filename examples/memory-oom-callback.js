// Acts before memory runs out. Run it from a checkout: node examples/memory-oom-callback.js [recording]
// With a recording, such as fixtures/traces/leak_graph, it is played at full speed; without one the GPUs are watched for three seconds.
import { OOMDetector } from 'gpuwarden'

const recording = process.argv[2]

function onWarning(prediction) {
  const { deviceId, riskLevel, predictedSeconds, currentUsagePercent, confidence, recommendations } = prediction
  const when = predictedSeconds === null ? 'no time can be given' : `in ${predictedSeconds.toFixed(1)} s`
  console.log(`GPU ${deviceId}: ${riskLevel}, ${currentUsagePercent?.toFixed(1)}% in use, ${when}, confidence ${confidence.toFixed(2)}`)
  if (riskLevel === 'critical') console.log(`  taking action: ${recommendations[0]}`)
}

const detector = new OOMDetector({
  threshold: 85.0,
  warningCallback: onWarning,
  ...(recording ? { source: `replay:${recording}` } : {}),
})
await detector.startMonitoring()
await (recording ? detector.ended() : new Promise((resolve) => setTimeout(resolve, 3000)))
await detector.stopMonitoring()
for (const { deviceId, riskLevel, message } of detector.getStatusReport())
  console.log(`at the end, GPU ${deviceId}: ${riskLevel}. ${message}`)
