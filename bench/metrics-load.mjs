// /metrics under load: latency of single scrapes, then 1,000 a second for ten seconds, while the agent samples at 10 Hz.
// node bench/metrics-load.mjs --fake LIBRARY   (the fake NVML of test/fake-nvml; 8 GPUs with 8 processes each)
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values: args } = parseArgs({
  options: { fake: { type: 'string' }, sets: { type: 'string', default: 'native' }, port: { type: 'string', default: '4793' } },
})
const here = dirname(fileURLToPath(import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'gpuwarden-load-'))
const script = join(scratch, 'script')
writeFileSync(script, 'gpus=8\nprocesses=8\nfreeze=1\n')
const child = spawn(
  process.execPath,
  [
    join(here, '../bin/gpuwarden.js'),
    'monitor',
    '--source',
    'nvidia',
    '--interval',
    '0.1',
    '--metrics',
    args.sets,
    '--port',
    args.port,
    '--log-dir',
    join(scratch, 'logs'),
    '--quiet',
  ],
  { env: { ...process.env, GPUWARDEN_NVML: args.fake, FAKE_NVML_SCRIPT: script }, stdio: 'inherit' },
)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const keep = new Agent({ keepAlive: true, maxSockets: 16 })
function scrape(path = '/metrics') {
  const started = performance.now()
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: args.port, path, agent: keep }, (answer) => {
      const chunks = []
      answer.on('data', (chunk) => chunks.push(chunk))
      answer.on('end', () => resolve({ ms: performance.now() - started, text: Buffer.concat(chunks).toString() }))
    }).on('error', reject)
  })
}
const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
const samplesOf = async () => {
  const { sources, sinks } = JSON.parse((await scrape('/api/v1/health')).text)
  const nvidia = sources.find((one) => one.source === 'nvidia')
  return {
    at: Date.now(),
    samples: nvidia.samples,
    skipped: nvidia.skippedTicks,
    dropped: sinks.reduce((sum, sink) => sum + sink.dropped, 0),
  }
}

await sleep(8000)
const { text } = await scrape()
console.log(`${text.split('\n').length} lines, ${Math.round(text.length / 1024)} KB, sets ${args.sets}`)
const single = []
for (let i = 0; i < 1000; i++) {
  single.push((await scrape()).ms)
  await sleep(5)
}
single.sort((a, b) => a - b)
console.log(`one at a time: median ${percentile(single, 0.5).toFixed(2)} ms, p99 ${percentile(single, 0.99).toFixed(2)} ms`)

const before = await samplesOf()
const under = []
const started = performance.now()
let sent = 0
const pending = new Set()
while (performance.now() - started < 10_000) {
  while (sent < performance.now() - started) {
    sent++
    const one = scrape().then(({ ms }) => under.push(ms))
    pending.add(one)
    void one.finally(() => pending.delete(one))
  }
  await sleep(1)
}
await Promise.all(pending)
const after = await samplesOf()
under.sort((a, b) => a - b)
const expected = (after.at - before.at) / 100
console.log(`${sent} scrapes in 10 s: median ${percentile(under, 0.5).toFixed(2)} ms, p99 ${percentile(under, 0.99).toFixed(2)} ms`)
console.log(
  `samples meanwhile: ${after.samples - before.samples} of ${expected.toFixed(0)} expected, ${after.skipped - before.skipped} ticks skipped, ${after.dropped - before.dropped} dropped`,
)
keep.destroy()
child.kill('SIGTERM')
