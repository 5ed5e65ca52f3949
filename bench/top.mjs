// What the terminal UI costs: time to the first frame, CPU at 1 s refresh, memory, growth.
// node bench/top.mjs [--seconds 60] [--gpus 8] [--processes 50] [--starts 5] [--minutes 0] [--columns 160] [--rows 50] [--json FILE]
// The NVIDIA source runs on the fake library; build first (node build.js). Starts of the bundle and of the modules that it is made of
// take turns, so that their ratio holds on a busy machine too. --minutes N also looks for growth over N minutes.
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
const endWorkers = () => {
  for (const worker of workers) worker.kill()
}
process.on('exit', endWorkers)
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
const BUNDLE = join(here, '../bin/gpuwarden.js')
const MODULES = join(scratch, 'modules.mjs')
writeFileSync(
  MODULES,
  `import { main } from ${JSON.stringify(join(here, '../dist/cli.js'))}\nprocess.exitCode = await main(process.argv.slice(2))\n`,
)
// The heap can be read from inside alone; a signal asks for it, after a collection.
const heapFile = join(scratch, 'heap')
const heapWatch = join(scratch, 'heap.mjs')
writeFileSync(
  heapWatch,
  `import { appendFileSync } from 'node:fs'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
process.on('SIGUSR2', () => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  appendFileSync(${JSON.stringify(heapFile)}, process.pid + ' ' + getHeapStatistics().used_heap_size + '\\n')
})
`,
)

function start(onText, file = BUNDLE, more = {}) {
  const program = `stty cols ${args.columns} rows ${args.rows}; exec ${process.execPath} ${file} top --source nvidia`
  // script(1) gives it a terminal; `-f` passes on every write at once.
  const child = spawn('script', ['-qfc', program, '/dev/null'], { env: { ...env, ...more }, stdio: ['pipe', 'pipe', 'inherit'] })
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

async function heapsOf(pids) {
  for (const pid of pids) process.kill(pid, 'SIGUSR2')
  await sleep(1000)
  const lines = (read(heapFile) ?? '').split('\n')
  return pids.map((pid) => Number(lines.findLast((line) => line.startsWith(`${pid} `))?.split(' ')[1] ?? Number.NaN) / 1024 ** 2)
}

async function firstFrame(file) {
  const began = performance.now()
  let frame = null
  let figures = null
  let seen = ''
  const child = start((text) => {
    const now = performance.now() - began
    seen += text
    if (frame === null && seen.includes('Quit')) frame = now
    if (figures === null && /\d+%/.test(seen) && seen.includes('GPUs')) figures = now
  }, file)
  while (figures === null && performance.now() - began < 10_000) await sleep(10)
  child.stdin.write('q')
  await new Promise((resolve) => child.once('exit', resolve))
  if (frame === null || figures === null) throw new Error(`no figures within 10 s; the terminal got ${JSON.stringify(seen.slice(-500))}`)
  return { frame, figures }
}

const starts = { bundle: [], modules: [] }
for (let index = 0; index < Number(args.starts); index++) {
  starts.bundle.push(await firstFrame(BUNDLE))
  starts.modules.push(await firstFrame(MODULES))
}
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const result = { gpus, processes: workers.length }
for (const [name, times] of Object.entries(starts)) {
  result[name] = { firstFrameMs: median(times.map((one) => one.frame)), firstFiguresMs: median(times.map((one) => one.figures)) }
  const { firstFrameMs, firstFiguresMs } = result[name]
  console.log(
    `${name}: first frame ${firstFrameMs.toFixed(0)} ms, first figures ${firstFiguresMs.toFixed(0)} ms (median of ${times.length})`,
  )
}
console.log(`first frame of the bundle: ${(result.bundle.firstFrameMs / result.modules.firstFrameMs).toFixed(2)} times that of the modules`)

let bytes = 0
let writes = 0
const child = start(
  (text) => {
    bytes += text.length
    writes++
  },
  BUNDLE,
  Number(args.minutes) > 0 ? { NODE_OPTIONS: `--import=${heapWatch}` } : {},
)
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
  result.growth = []
  for (let minute = 1; minute <= Number(args.minutes); minute++) {
    await sleep(60_000)
    const now = { minute, ...memory(pids) }
    // A collection changes what is measured: only at the beginning and at the end.
    if (minute === 2 || minute === Number(args.minutes)) now.heaps = await heapsOf(pids)
    result.growth.push(now)
    const heaps = now.heaps ? `, heaps after a collection ${now.heaps.map((size) => size.toFixed(2)).join(' + ')} MB` : ''
    console.log(`minute ${minute}: ${now.rss.toFixed(1)} MB RSS, ${now.pss.toFixed(1)} MB PSS${heaps}`)
  }
}
child.stdin.write('q')
await new Promise((resolve) => child.once('exit', resolve))
endWorkers()
if (args.json) writeFileSync(args.json, JSON.stringify(result, null, 2))
