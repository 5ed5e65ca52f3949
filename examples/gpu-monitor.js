// Watches the first GPU for three seconds. Run it from a checkout: node examples/gpu-monitor.js
// (With gpuwarden installed in your project the import is the same.)
import { GPUMonitor } from 'gpuwarden'

const monitor = new GPUMonitor({ gpuIndex: 0, sampleInterval: 0.5 })

monitor.on('event', (event) => console.log('event:', event.message))
monitor.on('health', (health) => {
  for (const { source, state, message } of health)
    if (state !== 'ok' && state !== 'starting') console.log(`${source}: ${state}: ${message}`)
})

const stopAt = Date.now() + 3000
for await (const sample of monitor) {
  const used = sample.memoryUsedBytes === null ? 'N/A' : `${Math.round(sample.memoryUsedBytes / 1024 ** 2)} MiB`
  const use = sample.utilizationRatio === null ? 'N/A' : `${Math.round(sample.utilizationRatio * 100)}%`
  console.log(
    `GPU ${sample.index} ${sample.name}${sample.simulated ? ' (SIMULATED)' : ''}: ${use}, ${used}, ${sample.owners.length} processes`,
  )
  if (Date.now() > stopAt) break
}
await monitor.stop()
