// Profiles GPU memory for two seconds and writes memory_report.json and memory_report.html into the working folder.
// Run it from a checkout: node examples/memory-profiler.js
import { MemoryProfiler } from 'gpuwarden'

const profiler = new MemoryProfiler({ samplingInterval: 0.1 })
await profiler.startMonitoring()
await new Promise((resolve) => setTimeout(resolve, 2000))
await profiler.stopMonitoring()

const report = await profiler.generateReport('memory_report.json')
await profiler.generateReport('memory_report.html')
console.log(
  `${report.summary.samples_count} samples of ${report.summary.total_devices} GPUs${report.summary.simulated ? ' (SIMULATED)' : ''}`,
)
