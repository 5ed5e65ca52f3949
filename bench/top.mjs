// What the terminal dashboard costs: time to the first frame, CPU at 1 s refresh, memory, growth.
// node bench/top.mjs [--seconds 60] [--gpus 8] [--processes 50] [--minutes 0] [--columns 160] [--rows 50] [--json FILE]
// The NVIDIA source runs on the fake library; build first (node build.js). --minutes N also looks for growth over N minutes.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = dirname(fileURLToPath(import.meta.url))
const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    gpus: { type: 'string', default: '8' },
    processes: { type: 'string', default: '50' },
    minutes: { type: 'string', default: '0' },
    starts: { type: 'string', default: '5' },
    columns: { type: 'string', default: '160' },
    rows: { type: 'string', default: '50' },
    json: { type: 'string' },
  },
})
const scratch = mkdtempSync(join(tmpdir(), 'gpuwarden-bench-top-'))
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const read = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

const library = join(scratch, 'libnvidia-ml.so')
const sources = ['fake-nvml.c', 'script.c', 'values.c', 'calls.c'].map((name) => join(here, '../test/fake-nvml', name))
const built = spawnSync('cc', ['-O2', '-w', '-shared', '-fPIC', '-o', library, ...sources, '-lm', '-lpthread'], { stdio: 'inherit' })
if (built.status !== 0) throw new Error('the fake library could not be built')

// Real processes, so that looking them up in /proc costs what it costs.
const gpus = Number(args.gpus)
const workers = Array.from({ length: Number(args.processes) }, () => spawn('sleep', ['100000'], { stdio: 'ignore' }))
const script = join(scratch, 'script')
const perGpu = Array.from({ length: gpus }, (_, gpu) => workers.filter((_, index) => index % gpus === gpu).map((worker) => worker.pid))
writeFileSync(
  script,
  [`gpus=${gpus}`, ...perGpu.flatMap((pids, gpu) => [`gpu${gpu}.processes=${pids.length}`, `gpu${gpu}.pids=${pids.join(',')}`]), ''].join(
    '\n',
  ),
)
const env = {
  ...process.env,
  GPUWARDEN_NVML: library,
  FAKE_NVML_SCRIPT: script,
  GPUWARDEN_SERVER_PORT: '1',
  XDG_CONFIG_HOME: scratch,
  TERM: 'xterm-256color',
  LANG: 'C.UTF-8',
}
const program = `stty cols ${args.columns} rows ${args.rows}; exec ${process.execPath} ${join(here, '../bin/gpuwarden.js')} top --source nvidia`

function start(onText) {
  // script(1) gives it a terminal; `-f` passes on every write at once.
  const child = spawn('script', ['-qfc', program, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', onText)
  return child
}

function tree(pid) {
  const found = []
  const visit = (one) => {
    for (const task of list(`/proc/${one}/task`))
      for (const child of (read(`/proc/${one}/task/${task}/children`) ?? '').trim().split(' ').filter(Boolean)) {
        found.push(Number(child))
        visit(child)
      }
  }
  visit(pid)
  return found.filter((one) => /node/.test((read(`/proc/${one}/cmdline`) ?? '').split('\0')[0] ?? ''))
}

function list(path) {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

const cpuNanoseconds = (pids) =>
  pids.reduce(
    (sum, pid) =>
      sum +
      list(`/proc/${pid}/task`).reduce((all, task) => all + Number(read(`/proc/${pid}/task/${task}/schedstat`)?.split(' ')[0] ?? 0), 0),
    0,
  )
const memory = (pids) => {
  const field = (pid, name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(read(`/proc/${pid}/smaps_rollup`) ?? '')?.[1] ?? 0) / 1024
  return { rss: pids.reduce((sum, pid) => sum + field(pid, 'Rss'), 0), pss: pids.reduce((sum, pid) => sum + field(pid, 'Pss'), 0) }
}

async function firstFrame() {
  const began = performance.now()
  let frame = null
  let figures = null
  const child = start((text) => {
    const now = performance.now() - began
    if (frame === null && text.includes('Quit')) frame = now
    if (figures === null && /\d+%/.test(text) && text.includes('GPUs')) figures = now
  })
  while (figures === null && performance.now() - began < 10_000) await sleep(10)
  child.stdin.write('q')
  await new Promise((resolve) => child.once('exit', resolve))
  return { frame, figures }
}

const starts = []
for (let index = 0; index < Number(args.starts); index++) starts.push(await firstFrame())
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const result = {
  gpus,
  processes: workers.length,
  firstFrameMs: median(starts.map((one) => one.frame)),
  firstFiguresMs: median(starts.map((one) => one.figures)),
}
console.log(
  `first frame ${result.firstFrameMs.toFixed(0)} ms, first figures ${result.firstFiguresMs.toFixed(0)} ms after the start (median of ${starts.length})`,
)

let bytes = 0
let writes = 0
const child = start((text) => {
  bytes += text.length
  writes++
})
await sleep(10_000)
const pids = tree(child.pid)
const measure = async (seconds) => {
  const [cpu, began, bytesBefore, writesBefore] = [cpuNanoseconds(pids), performance.now(), bytes, writes]
  await sleep(seconds * 1000)
  const passed = performance.now() - began
  return {
    cpuPercent: (cpuNanoseconds(pids) - cpu) / (passed * 1e4),
    bytesPerSecond: ((bytes - bytesBefore) * 1000) / passed,
    writesPerSecond: ((writes - writesBefore) * 1000) / passed,
    ...memory(pids),
  }
}
Object.assign(result, await measure(Number(args.seconds)), { of: pids.length })
console.log(
  `${result.cpuPercent.toFixed(2)} % of a core, ${result.rss.toFixed(0)} MB RSS (${result.pss.toFixed(0)} MB PSS) in ${pids.length} processes`,
)
console.log(`${(result.bytesPerSecond / 1024).toFixed(1)} KB/s to the terminal in ${result.writesPerSecond.toFixed(1)} writes a second`)
if (Number(args.minutes) > 0) {
  result.growth = [memory(pids)]
  for (let minute = 1; minute <= Number(args.minutes); minute++) {
    await sleep(60_000)
    result.growth.push(memory(pids))
    console.log(`minute ${minute}: ${result.growth.at(-1).rss.toFixed(1)} MB RSS, ${result.growth.at(-1).pss.toFixed(1)} MB PSS`)
  }
}
child.stdin.write('q')
await new Promise((resolve) => child.once('exit', resolve))
for (const worker of workers) worker.kill()
if (args.json) writeFileSync(args.json, JSON.stringify(result, null, 2))
