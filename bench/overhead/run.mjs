// What watching costs: gpuwarden beside a bare C loop, pynvml, nvidia-smi and nvitop, one after the other in one run.
// node bench/overhead/run.mjs [--seconds 30] [--only c,gpuwarden] [--fake LIBRARY] [--json FILE]
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = dirname(fileURLToPath(import.meta.url))
const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    warmup: { type: 'string', default: '6' },
    only: { type: 'string' },
    fake: { type: 'string' },
    json: { type: 'string' },
  },
})
const seconds = Number(args.seconds)
const warmup = Number(args.warmup)
const scratch = mkdtempSync(join(tmpdir(), 'gpuwarden-bench-'))
const env = { ...process.env, ...(args.fake ? { GPUWARDEN_NVML: args.fake } : {}) }
const python = process.env.PYTHON ?? 'python3'

const loop = join(scratch, 'nvml-loop')
spawnSync('cc', ['-O2', '-w', '-o', loop, join(here, 'nvml-loop.c'), '-ldl'], { stdio: 'inherit' })
const life = String(seconds + warmup + 30)
const library = args.fake ? [args.fake] : []
const gpuwarden = (interval, port) => [
  process.execPath,
  [
    join(here, '../../bin/gpuwarden.js'),
    'monitor',
    '--source',
    'nvidia',
    '--interval',
    interval,
    '--port',
    String(port),
    '--log-dir',
    join(scratch, `logs-${port}`),
    '--quiet',
  ],
]

const CANDIDATES = {
  'c-10hz': [loop, ['100', life, ...library]],
  'c-1hz': [loop, ['1000', life, ...library]],
  'gpuwarden-10hz': gpuwarden('0.1', 4791),
  'gpuwarden-1hz': gpuwarden('1', 4792),
  'pynvml-10hz': [python, [join(here, 'pynvml_loop.py'), '100', life]],
  'nvidia-smi-10hz': [
    'nvidia-smi',
    [
      '-lms',
      '100',
      '--query-gpu=index,utilization.gpu,utilization.memory,memory.used,memory.total,temperature.gpu,power.draw,fan.speed,clocks.sm,clocks.mem,pstate',
      '--format=csv',
    ],
  ],
  'nvitop-1hz': ['script', ['-qfc', `${python} -m nvitop --monitor full --interval 1`, '/dev/null']],
}

const read = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function tree(pid) {
  const parents = new Map()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? read(`/proc/${name}/stat`) : null
    if (stat) parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
  }
  const found = [pid]
  for (let i = 0; i < found.length; i++) for (const [child, parent] of parents) if (parent === found[i]) found.push(child)
  return found
}

/** Nanoseconds on a core, of every thread of every process below `pid`. */
function cpuNanoseconds(pid) {
  let sum = 0
  for (const one of tree(pid))
    for (const task of safeDir(`/proc/${one}/task`)) sum += Number(read(`/proc/${one}/task/${task}/schedstat`)?.split(' ')[0] ?? 0)
  return sum
}

function safeDir(path) {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function pssMegabytes(pid) {
  return tree(pid).map((one) => ({
    name: (read(`/proc/${one}/cmdline`) ?? '')
      .split('\0')
      .slice(0, 3)
      .map((part) => part.split('/').at(-1))
      .join(' '),
    pss: Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${one}/smaps_rollup`) ?? '')?.[1] ?? 0) / 1024,
  }))
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function measure(name, [command, commandArgs]) {
  const child = spawn(command, commandArgs, {
    env: { ...env, TERM: 'xterm-256color', COLUMNS: '160', LINES: '50' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  let gone = false
  child.stderr.on('data', (data) => {
    errors = (errors + data).slice(-400)
  })
  child.on('error', (error) => {
    errors = error.message
    gone = true
  })
  child.on('exit', () => {
    gone = true
  })
  await sleep(warmup * 1000)
  if (gone) return { name, skipped: errors.trim() || 'ended at once' }
  const port = /^gpuwarden/.test(name) ? commandArgs[commandArgs.indexOf('--port') + 1] : null
  const scraper = port
    ? setInterval(
        () =>
          void fetch(`http://127.0.0.1:${port}/metrics`)
            .then((answer) => answer.text())
            .catch(() => undefined),
        15_000,
      )
    : null
  const [cpu, started] = [cpuNanoseconds(child.pid), performance.now()]
  await sleep(seconds * 1000)
  const percent = ((cpuNanoseconds(child.pid) - cpu) / ((performance.now() - started) * 1e6)) * 100
  if (scraper) clearInterval(scraper)
  const endedEarly = gone
  const memory = endedEarly ? [] : pssMegabytes(child.pid)
  child.kill('SIGTERM')
  await sleep(500)
  child.kill('SIGKILL')
  return endedEarly
    ? { name, skipped: `ended early: ${errors.trim()}` }
    : { name, cpuPercent: percent, pssMegabytes: memory.reduce((sum, one) => sum + one.pss, 0), processes: memory }
}

const results = []
for (const [name, candidate] of Object.entries(CANDIDATES)) {
  if (args.only && !args.only.split(',').some((part) => name.includes(part))) continue
  const result = await measure(name, candidate)
  results.push(result)
  const base = results.find((one) => one.name === `c-${name.split('-').at(-1)}`)?.cpuPercent
  const ratio = base && result.cpuPercent ? `${(result.cpuPercent / base).toFixed(2)} × the C loop` : ''
  console.log(
    result.skipped
      ? `${name.padEnd(18)} skipped: ${result.skipped}`
      : `${name.padEnd(18)} ${result.cpuPercent.toFixed(3)} % of a core  ${result.pssMegabytes.toFixed(1)} MB PSS  ${ratio}`,
  )
}
if (args.json) writeFileSync(args.json, JSON.stringify({ seconds, results }, null, 2))
