// What watching costs: gpuwarden beside a bare C loop, pynvml, nvidia-smi and nvitop, in one run: the others one after the other,
// then gpuwarden at 1 Hz and at 10 Hz together, after a warm-up.
// node bench/overhead/run.mjs [--seconds 30] [--warmup 240] [--settle 5] [--only c,gpuwarden] [--fake LIBRARY] [--json FILE]
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
    warmup: { type: 'string', default: '240' },
    settle: { type: 'string', default: '5' },
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
const life = String(seconds + Number(args.settle) + 30)
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

/** Nanoseconds on a core so far, by process: `pid` and all below it, every thread. */
function cpuNanoseconds(pid) {
  return new Map(
    tree(pid).map((one) => [
      one,
      safeDir(`/proc/${one}/task`).reduce((sum, task) => sum + Number(read(`/proc/${one}/task/${task}/schedstat`)?.split(' ')[0] ?? 0), 0),
    ]),
  )
}

function safeDir(path) {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function pssMegabytes(pid) {
  return Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`) ?? '')?.[1] ?? 0) / 1024
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Several at the same time: each with its share of a core, of its parts, and its memory. */
async function measure(names, warmupSeconds) {
  const running = names.map((name) => start(name, CANDIDATES[name]))
  // From the start: the first scrape compiles what it runs and costs five times what the next ones do.
  const scraper = setInterval(() => {
    for (const { port } of running)
      if (port !== null)
        void fetch(`http://127.0.0.1:${port}/metrics`)
          .then((answer) => answer.text())
          .catch(() => undefined)
  }, 15_000)
  await sleep(warmupSeconds * 1000)
  const began = performance.now()
  const before = running.map(({ child }) => cpuNanoseconds(child.pid))
  await sleep(seconds * 1000)
  const nanoseconds = (performance.now() - began) * 1e6
  clearInterval(scraper)
  const results = running.map((one, i) => {
    const { name, state, child } = one
    if (state.gone) return { name, skipped: state.errors.trim() || 'ended before it was measured' }
    const processes = [...cpuNanoseconds(child.pid)].map(([pid, after]) => ({
      pid,
      cpuPercent: ((after - (before[i].get(pid) ?? 0)) / nanoseconds) * 100,
      pssMegabytes: pssMegabytes(pid),
    }))
    const sum = (key) => processes.reduce((total, process) => total + process[key], 0)
    return { name, cpuPercent: sum('cpuPercent'), pssMegabytes: sum('pssMegabytes'), processes }
  })
  for (const { child } of running) child.kill('SIGTERM')
  await sleep(1000)
  for (const { child } of running) child.kill('SIGKILL')
  return results
}

function start(name, [command, commandArgs]) {
  const child = spawn(command, commandArgs, {
    env: { ...env, TERM: 'xterm-256color', COLUMNS: '160', LINES: '50' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const state = { errors: '', gone: false }
  child.stderr.on('data', (data) => {
    state.errors = (state.errors + data).slice(-400)
  })
  child.on('error', (error) => {
    state.errors = error.message
    state.gone = true
  })
  child.on('exit', () => {
    state.gone = true
  })
  const port = name.startsWith('gpuwarden') ? Number(commandArgs[commandArgs.indexOf('--port') + 1]) : null
  return { name, child, state, port }
}

const wanted = Object.keys(CANDIDATES).filter((name) => !args.only || args.only.split(',').some((part) => name.includes(part)))
const ours = wanted.filter((name) => name.startsWith('gpuwarden'))
const results = []
for (const name of wanted) if (!ours.includes(name)) results.push(...(await measure([name], Number(args.settle))))
// A compiler at work costs more than the program later on: ours need minutes, and have them together.
if (ours.length > 0) results.push(...(await measure(ours, warmup)))

for (const { name, skipped, cpuPercent, pssMegabytes: memory, processes } of results) {
  if (skipped) {
    console.log(`${name.padEnd(18)} skipped: ${skipped}`)
    continue
  }
  const base = results.find((one) => one.name === `c-${name.split('-').at(-1)}`)?.cpuPercent
  const ratio = base ? `${(cpuPercent / base).toFixed(2)} × the C loop` : ''
  const parts = processes.length > 1 ? `(${processes.map((process) => process.cpuPercent.toFixed(3)).join(' + ')})` : ''
  console.log(`${name.padEnd(18)} ${cpuPercent.toFixed(3)} % of a core  ${memory.toFixed(1)} MB PSS  ${ratio}  ${parts}`)
}
if (args.json) writeFileSync(args.json, JSON.stringify({ seconds, warmup, results }, null, 2))
