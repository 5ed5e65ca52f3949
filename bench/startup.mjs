// How quickly it answers: the version against a bare node, the first sample on a terminal, and a hung driver call.
// node bench/startup.mjs --fake LIBRARY
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values: args } = parseArgs({ options: { fake: { type: 'string' }, rounds: { type: 'string', default: '20' } } })
const bin = join(dirname(fileURLToPath(import.meta.url)), '../bin/gpuwarden.js')
const scratch = mkdtempSync(join(tmpdir(), 'gpuwarden-startup-'))
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1]
const time = (argv) => {
  const started = performance.now()
  spawnSync(process.execPath, argv)
  return performance.now() - started
}
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const bare = []
const version = []
for (let i = 0; i < Number(args.rounds); i++) {
  bare.push(time(['-e', '0']))
  version.push(time([bin, '--version']))
}
console.log(
  `node -e 0: ${median(bare).toFixed(0)} ms; gpuwarden --version: ${median(version).toFixed(0)} ms; ratio ${(median(version) / median(bare)).toFixed(2)}`,
)

// A terminal made by script(1): the time until the first line of a GPU is on it.
const first = []
for (let i = 0; i < 5; i++) {
  const started = performance.now()
  const command = `${process.execPath} ${bin} monitor --source nvidia --port 0 --log-dir ${join(scratch, `logs-${i}`)}`
  const child = spawn('script', ['-qfc', command, '/dev/null'], {
    env: { ...process.env, GPUWARDEN_NVML: args.fake },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await new Promise((resolve) => {
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
      if (/GPU 0 .*util/.test(text)) resolve()
    })
  })
  first.push(performance.now() - started)
  child.kill()
  await sleep(300)
}
console.log(`first sample on screen: median ${median(first).toFixed(0)} ms of ${first.length}`)

const script = join(scratch, 'script')
writeFileSync(script, 'gpus=1\n')
const deadline = 1
const agent = spawn(
  process.execPath,
  [
    bin,
    'monitor',
    '--source',
    'nvidia',
    '--interval',
    '0.1',
    '--deadline',
    String(deadline),
    '--port',
    '4789',
    '--log-dir',
    join(scratch, 'logs'),
    '--quiet',
  ],
  {
    env: { ...process.env, GPUWARDEN_NVML: args.fake, FAKE_NVML_SCRIPT: script },
  },
)
await sleep(4000)
writeFileSync(script, 'gpus=1\nhang=nvmlDeviceGetMemoryInfo_v2\n')
const hung = performance.now()
const answers = []
let seen = null
while (seen === null && performance.now() - hung < 10_000) {
  const started = performance.now()
  const { sources } = await (await fetch('http://127.0.0.1:4789/api/v1/health')).json()
  answers.push(performance.now() - started)
  if (sources.find((one) => one.source === 'nvidia').state === 'not_responding') seen = performance.now() - hung
  await sleep(10)
}
console.log(
  `hung driver call, deadline ${deadline} s: shown after ${(seen / 1000).toFixed(2)} s; ${answers.length} requests meanwhile, slowest ${Math.max(...answers).toFixed(1)} ms`,
)
agent.kill('SIGTERM')
