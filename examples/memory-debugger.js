// All memory tools at once, for three seconds. Run it from a checkout: node examples/memory-debugger.js
// Without a GPU: GPUWARDEN_SOURCE=demo GPUWARDEN_DEMO_SCENARIO=oom node examples/memory-debugger.js
import { MemoryDebugger } from 'gpuwarden'

const memory = new MemoryDebugger({
  warningCallback: (prediction) => console.log(`OOM risk ${prediction.riskLevel} on GPU ${prediction.deviceId}`),
  leakCallback: (verdict) => console.log('leak:', verdict.message),
})
await memory.startMonitoring()

// Your program runs here.
await new Promise((resolve) => setTimeout(resolve, 3000))

await memory.stopMonitoring()
const report = memory.getStatusReport()
for (const [label, { current_usage: now, statistics, name }] of Object.entries(report.devices))
  console.log(`GPU ${label} ${name}: ${now.utilization_percent}% in use, ${statistics.max_utilization}% at most`)
for (const { deviceId, riskLevel } of report.oom) console.log(`GPU ${deviceId}: OOM risk ${riskLevel}`)
for (const { message, answer } of report.leaks) console.log(`${answer}: ${message}`)
for (const { run, ratio } of report.fragmentation.runs)
  console.log(`run ${run}: fragmentation ${ratio === null ? 'not known' : `${(ratio * 100).toFixed(1)}%`}`)
if (report.summary.simulated) console.log('These GPUs are SIMULATED.')
