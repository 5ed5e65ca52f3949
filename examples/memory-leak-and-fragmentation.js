// Judges a recording: does it leak, and how fragmented is the allocator?
// Run it from a checkout: node examples/memory-leak-and-fragmentation.js fixtures/traces/leak_graph
import { FragmentationAnalyzer, LeakDetector } from 'gpuwarden'

const source = `replay:${process.argv[2] ?? 'fixtures/traces/leak_graph'}`

const leaks = new LeakDetector({ source, threshold: 100, warningCallback: (verdict) => console.log('found:', verdict.message) })
await leaks.startMonitoring()
await leaks.ended()
await leaks.stopMonitoring()
for (const { answer, confidence, message } of leaks.checkForLeaks())
  console.log(`[${answer}] ${confidence === null ? '' : `(${confidence.toFixed(2)}) `}${message}`)

const analyzer = new FragmentationAnalyzer({ source })
await analyzer.startMonitoring()
await analyzer.ended()
await analyzer.stopMonitoring()
const { runs, devices } = analyzer.analyze()
for (const { label, ledger } of devices)
  for (const { name, bytes } of ledger?.entries ?? []) console.log(`GPU ${label} ${name}: ${Math.round(bytes / 1024 ** 2)} MiB`)
for (const { run, ratio, level } of runs)
  console.log(`run ${run}: ${ratio === null ? 'not known' : `${(ratio * 100).toFixed(1)}%`} fragmented (${level})`)
