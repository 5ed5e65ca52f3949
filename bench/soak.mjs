// Does memory stay flat? Runs the agent at 10 Hz, scrapes it as Prometheus would, and prints PSS of both processes once a minute.
// node bench/soak.mjs [--minutes 30] [--interval 0.1] [--fake LIBRARY] [--source nvidia]
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values: args } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    interval: { type: 'string', default: '0.1' },
    source: { type: 'string', default: 'nvidia' },
    fake: { type: 'string' },
    port: { type: 'string', default: '4794' },
  },
})
const here = dirname(fileURLToPath(import.meta.url))
const logs = mkdtempSync(join(tmpdir(), 'gpuwarden-soak-'))
const child = spawn(
  process.execPath,
  [
    join(here, '../bin/gpuwarden.js'),
    'monitor',
    '--source',
    args.source,
    '--interval',
    args.interval,
    '--port',
    args.port,
    '--log-dir',
    logs,
    '--quiet',
  ],
  { env: { ...process.env, ...(args.fake ? { GPUWARDEN_NVML: args.fake } : {}) }, stdio: 'inherit' },
)
const scraper = setInterval(() => void fetch(`http://127.0.0.1:${args.port}/metrics`).then((answer) => answer.text()), 15_000)
const pss = (pid) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024

const figures = []
for (let minute = 1; minute <= Number(args.minutes); minute++) {
  await new Promise((resolve) => setTimeout(resolve, 60_000))
  const samplers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  const agent = pss(child.pid)
  const sampler = samplers.reduce((sum, pid) => sum + pss(pid), 0)
  figures.push({ minute, sum: agent + sampler })
  console.log(
    `minute ${String(minute).padStart(2)}  agent ${agent.toFixed(1)} MB  sampler ${sampler.toFixed(1)} MB  together ${(agent + sampler).toFixed(1)} MB PSS`,
  )
}
const at = (minute) => figures.find((one) => one.minute === minute)?.sum
const [first, last] = [at(5), figures.at(-1)?.sum]
if (first !== undefined && last !== undefined)
  console.log(`from minute 5 to minute ${figures.at(-1).minute}: ${(last - first).toFixed(1)} MB`)
clearInterval(scraper)
child.kill('SIGTERM')
