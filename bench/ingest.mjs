// How many training steps the agent takes per second of one core, with everything behind it: journal, JSONL log, /metrics, detectors.
// Usage: node build.js && node bench/ingest.mjs [steps=400000] [ranks=8] [batch=500] [--gzip]
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'

const numbers = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const [steps = 400_000, ranks = 8, batch = 500] = numbers.map(Number)
const isGzip = process.argv.includes('--gzip')
const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-ingest-'))
const bin = fileURLToPath(new URL('../bin/gpuwarden.js', import.meta.url))
const agent = spawn(
  process.execPath,
  [bin, 'monitor', '--source', 'demo', '--demo-scenario', 'healthy', '--port', '0', '--log-dir', dir, '--interval', '1'],
  {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, GPUWARDEN_LOG_KEEP_TOTAL_MB: '0' },
  },
)

const url = await new Promise((resolve, reject) => {
  let text = ''
  agent.stderr.on('data', (data) => {
    text += data
    const line = text.split('\n').find((one) => one.includes('gpuwarden is watching'))
    if (line) resolve(new URL(JSON.parse(line).url))
  })
  agent.once('exit', (code) => reject(new Error(`the agent ended with ${code}: ${text}`)))
})

const connections = new Agent({ keepAlive: true, maxSockets: ranks })
function post(path, body, headers) {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: url.hostname,
        port: url.port,
        path,
        method: 'POST',
        agent: connections,
        headers: { ...headers, 'content-length': body.length },
      },
      (answer) => {
        let text = ''
        answer.on('data', (data) => {
          text += data
        })
        answer.on('end', () => (answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${answer.statusCode}: ${text}`))))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** User and system time of the agent itself, in seconds; the sampler is another process. */
function cpuSeconds() {
  const stat = readFileSync(`/proc/${agent.pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
const residentMiB = () => Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))?.[1]) / 1024)

await post('/api/v1/runs', Buffer.from(JSON.stringify({ id: 'bench', name: 'bench', world_size: ranks })), {
  'content-type': 'application/json',
})
const perRank = Math.floor(steps / ranks)
const started = Date.now()
/** Made beforehand, so that the other core's work does not hold the agent up. */
const bodies = Array.from({ length: ranks }, (_, rank) => {
  const out = []
  for (let seq = 1; seq <= perRank; seq += batch) {
    const lines = []
    for (let n = seq; n < seq + batch && n <= perRank; n++)
      lines.push(
        JSON.stringify({
          seq: n,
          rank,
          step: n,
          t: started + n * 10,
          epoch: n / 1000,
          loss: 2.5 / Math.sqrt(n) + 0.01 * Math.sin(n),
          lr: 1e-4,
          grad_norm: 1.2,
          throughput: 512.5,
          step_seconds: 0.0101,
          phases: { data: 0.001, forward: 0.003, backward: 0.006 },
          alloc: {
            allocated: 18e9,
            reserved: 20e9,
            active: 18.1e9,
            inactive_split: 1e8,
            peak_allocated: 19e9,
            peak_reserved: 20e9,
            retries: 0,
            ooms: 0,
          },
          local_rank: rank,
          world_size: ranks,
          pid: 1000 + rank,
        }),
      )
    const body = Buffer.from(`${lines.join('\n')}\n`)
    out.push(isGzip ? gzipSync(body, { level: 1 }) : body)
  }
  return out
})

const cpuBefore = cpuSeconds()
const before = performance.now()
let accepted = 0
await Promise.all(
  bodies.map(async (own) => {
    for (const body of own) {
      const headers = { 'content-type': 'application/x-ndjson', ...(isGzip ? { 'content-encoding': 'gzip' } : {}) }
      const answer = await post('/api/v1/runs/bench/steps', body, headers)
      accepted += answer.accepted
    }
  }),
)
await post('/api/v1/runs/bench/end', Buffer.from('{"outcome":"success"}'), { 'content-type': 'application/json' })
const wall = (performance.now() - before) / 1000
const cpu = cpuSeconds() - cpuBefore
const memory = residentMiB()
const ended = new Promise((resolve) => agent.once('exit', resolve))
agent.kill('SIGTERM')
await ended
let written = 0
for (const name of readdirSync(dir).filter((one) => one.startsWith('training_metrics_'))) {
  const bytes = readFileSync(join(dir, name))
  const text = name.endsWith('.gz') ? gunzipSync(bytes) : bytes
  // The simulated GPUs train, too.
  for (let at = text.indexOf('"run":"bench"'); at !== -1; at = text.indexOf('"run":"bench"', at + 1)) written++
}
rmSync(dir, { recursive: true })
const sent = perRank * ranks
console.log(
  `${sent} steps sent in batches of ${batch} by ${ranks} ranks${isGzip ? ', gzip' : ''}; ${accepted} accepted, ${written} lines in the log`,
)
console.log(
  `${wall.toFixed(2)} s, ${Math.round(sent / wall)} steps/s; ${cpu.toFixed(2)} s of processor time, ${Math.round(sent / cpu)} steps per second of one core; ${memory} MiB resident`,
)
if (accepted !== sent || written !== sent) {
  console.error('steps were lost or doubled')
  process.exitCode = 1
}
