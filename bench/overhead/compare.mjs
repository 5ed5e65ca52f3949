// What two or more builds cost beside each other, at the same time, so that the noise of the machine is the same for all.
// node bench/overhead/compare.mjs --build before=DIR --build after=DIR [--interval 1] [--gpus 8] [--fake LIBRARY] [--rounds 2]
// DIR holds bin/ and dist/ of a build; flags of Node.js for the agent may follow it, by commas: after=DIR,--max-lazy
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = dirname(fileURLToPath(import.meta.url))
const { values: args } = parseArgs({
  options: {
    build: { type: 'string', multiple: true, default: [`this=${join(here, '../..')}`] },
    interval: { type: 'string', default: '1' },
    gpus: { type: 'string', default: '1' },
    processes: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '60' },
    warmup: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '1' },
    fake: { type: 'string' },
    scrape: { type: 'string', default: '15' },
    loop: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
})
const scratch = mkdtempSync(join(tmpdir(), 'gpuwarden-compare-'))
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100

const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

// Processes to be shown on the GPUs: real ones, which do nothing.
const pretended = args.fake ? Array.from({ length: Number(args.processes) }, () => spawn('sleep', ['1000000'], { stdio: 'ignore' })) : []
for (const one of pretended) children.add(one)
const script = join(scratch, 'script')
writeFileSync(
  script,
  `freeze=1\ngpus=${args.gpus}\nprocesses=${pretended.length}\npids=${pretended.map((one) => one.pid).join()}\nutil_samples=${pretended.length}\n`,
)
const env = { ...process.env, ...(args.fake ? { GPUWARDEN_NVML: args.fake, FAKE_NVML_SCRIPT: script } : {}) }

const read = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
const list = (path) => {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function childrenOf(pid) {
  return list(`/proc/${pid}/task`).flatMap((task) =>
    read(`/proc/${pid}/task/${task}/children`).trim().split(' ').filter(Boolean).map(Number),
  )
}

/** Milliseconds on a core, of them in the kernel by its own coarser count, and how often a thread was woken. */
function usage(pid) {
  let [cpuMs, userTicks, systemTicks, wakeups] = [0, 0, 0, 0]
  for (const task of list(`/proc/${pid}/task`)) {
    cpuMs += Number(read(`/proc/${pid}/task/${task}/schedstat`).split(' ')[0]) / 1e6
    wakeups += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read(`/proc/${pid}/task/${task}/status`))?.[1] ?? 0)
    const stat = read(`/proc/${pid}/task/${task}/stat`)
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    userTicks += Number(fields[11] ?? 0)
    systemTicks += Number(fields[12] ?? 0)
  }
  return { cpuMs, userMs: (userTicks * 1000) / ticksPerSecond, systemMs: (systemTicks * 1000) / ticksPerSecond, wakeups }
}

function difference(before, after, seconds) {
  const per = (key) => (after[key] - before[key]) / seconds
  const ticks = after.userMs - before.userMs + after.systemMs - before.systemMs
  const systemShare = ticks > 0 ? (after.systemMs - before.systemMs) / ticks : 0
  return { percent: per('cpuMs') / 10, systemPercent: (per('cpuMs') / 10) * systemShare, wakeupsPerSecond: per('wakeups') }
}

function start(name, command, commandArgs, port) {
  const child = spawn(command, commandArgs, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return { name, child, port }
}

async function round(number) {
  const port = (position) => 20_000 + ((process.pid * 8 + number * 64 + position) % 20_000)
  const running = args.build.map((one, position) => {
    const [name, where] = [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]
    const [dir, ...flags] = where.split(',')
    const options = ['--source', 'nvidia', '--interval', args.interval, '--port', String(port(position)), '--quiet']
    const logs = ['--log-dir', join(scratch, `${name}-${number}`)]
    return start(name, process.execPath, [...flags, join(dir, 'bin/gpuwarden.js'), 'monitor', ...options, ...logs], port(position))
  })
  if (args.loop) {
    const loop = join(scratch, 'nvml-loop')
    spawnSync('cc', ['-O2', '-w', '-o', loop, join(here, 'nvml-loop.c'), '-ldl'], { stdio: 'inherit' })
    const life = String(Number(args.seconds) + Number(args.warmup) + 30)
    running.push(start('c-loop', loop, [String(Number(args.interval) * 1000), life, ...(args.fake ? [args.fake] : [])], null))
  }
  // From the start: the first scrape compiles what it runs and costs five times what the next ones do.
  const scraper = setInterval(() => {
    for (const one of running)
      if (one.port)
        fetch(`http://127.0.0.1:${one.port}/metrics`).then(
          (answer) => answer.text(),
          () => undefined,
        )
  }, Number(args.scrape) * 1000)
  await sleep(Number(args.warmup) * 1000)
  const measured = () => running.map(({ child }) => [child.pid, ...childrenOf(child.pid)].map(usage))
  const started = performance.now()
  const before = measured()
  await sleep(Number(args.seconds) * 1000)
  const after = measured()
  const seconds = (performance.now() - started) / 1000
  clearInterval(scraper)
  const dead = running.find(({ child }) => child.exitCode !== null || child.signalCode !== null)
  if (dead) throw new Error(`${dead.name} ended before it was measured: see what it said above`)
  const results = running.map(({ name }, i) => ({ name, processes: before[i].map((one, at) => difference(one, after[i][at], seconds)) }))
  for (const { child } of running) child.kill('SIGTERM')
  await sleep(1500)
  return results
}

const sums = new Map()
for (let number = 0; number < Number(args.rounds); number++) {
  for (const { name, processes } of await round(number)) {
    const total = processes.reduce((sum, one) => sum + one.percent, 0)
    sums.set(name, [...(sums.get(name) ?? []), { total, processes }])
    const part = (one, label) =>
      one ? `${label} ${one.percent.toFixed(3)} (sys ${one.systemPercent.toFixed(2)}, ${one.wakeupsPerSecond.toFixed(1)} wakes/s)` : ''
    console.log(`${name.padEnd(10)} ${total.toFixed(3)} %  ${part(processes[0], 'agent')}  ${part(processes[1], 'sampler')}`)
  }
}
const base = mean(sums.values().next().value ?? [])
for (const [name, all] of sums) console.log(`${name.padEnd(10)} mean ${mean(all).toFixed(3)} %  × ${(mean(all) / base).toFixed(2)}`)
if (args.json) writeFileSync(args.json, JSON.stringify({ args, results: [...sums] }, null, 2))
for (const one of pretended) one.kill()
rmSync(scratch, { recursive: true, force: true })

function mean(all) {
  return all.reduce((sum, one) => sum + one.total, 0) / Math.max(1, all.length)
}
