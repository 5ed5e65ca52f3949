// Makes the history of a whole simulated year as the agent would have written it, then asks for spans of it and prints time and memory.
//   node bench/history.mjs [--gpus 8] [--days 365] [--dir FOLDER] [--keep] [--ask-only]
// --dir with --keep leaves the files for another look; --ask-only asks for what is in --dir already.
import { execFileSync, fork } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { createLongHistory } from '../dist/store/tiers/long-history.js'
import { parquetOf } from '../dist/store/tiers/parquet-file.js'
import { Rows } from '../dist/store/tiers/rows.js'
import { seriesOf } from '../dist/store/tiers/series.js'
import { FINEST, periodOf, TIERS, tierFile } from '../dist/store/tiers/tier-table.js'

const { values: given } = parseArgs({
  options: {
    gpus: { type: 'string', default: '8' },
    days: { type: 'string', default: '365' },
    dir: { type: 'string' },
    keep: { type: 'boolean', default: false },
    'ask-only': { type: 'boolean', default: false },
    child: { type: 'string' },
  },
})
const DAY_MS = 86_400_000
const END = Date.UTC(2026, 10, 16)
const KEPT_FINEST_DAYS = 14
/** Of each reading that an H100 reports: how it moves, in the units of a recording. */
const MOVES = {
  utilization_percent: [0, 100, 1],
  memory_used_mb: [500, 81_000, 1],
  memory_free_mb: [500, 81_000, 1],
  temperature_celsius: [30, 82, 1],
  memory_temperature_celsius: [30, 90, 1],
  power_draw_watts: [70, 700, 0.1],
  memory_bandwidth_percent: [0, 100, 1],
  graphics_clock_mhz: [345, 1980, 15],
  sm_clock_mhz: [345, 1980, 15],
  sm_active_percent: [0, 100, 0.1],
  sm_occupancy_percent: [0, 60, 0.1],
  tensor_active_percent: [0, 70, 0.1],
  dram_active_percent: [0, 90, 0.1],
  graphics_active_percent: [0, 100, 0.1],
  fp16_active_percent: [0, 20, 0.1],
  fp32_active_percent: [0, 40, 0.1],
  pcie_tx_mb_per_sec: [0, 20_000, 0.01],
  pcie_rx_mb_per_sec: [0, 20_000, 0.01],
  nvlink_tx_mb_per_sec: [0, 200_000, 0.01],
  nvlink_rx_mb_per_sec: [0, 200_000, 0.01],
}
const STILL = {
  memory_total_mb: 81_559,
  memory_reserved_by_driver_mb: 552,
  memory_clock_mhz: 2619,
  video_clock_mhz: 1782,
  performance_state: 0,
  clocks_event_reasons: 0,
  encoder_percent: 0,
  decoder_percent: 0,
  fp64_active_percent: 0,
  pcie_generation: 5,
  pcie_width: 16,
  pcie_replay_count: 0,
  ecc_corrected_volatile_count: 0,
  ecc_uncorrected_volatile_count: 0,
  remapped_correctable_rows: 0,
  remapped_uncorrectable_rows: 0,
}
const FIELDS = [
  'utilizationRatio',
  'memoryUsedBytes',
  'temperatureCelsius',
  'powerWatts',
  'smActiveRatio',
  'tensorActiveRatio',
  'pcieRxBytesPerSecond',
  'nvlinkTxBytesPerSecond',
]

const gpuId = (index) => `GPU-00000000-0000-0000-0000-00000000000${index}`

if (given.child !== undefined) await askAll(JSON.parse(given.child))
else await main()

async function main() {
  const gpus = Number(given.gpus)
  const days = Number(given.days)
  const dir = given.dir ?? mkdtempSync(join(tmpdir(), 'gpuwarden-year-'))
  if (!given['ask-only']) {
    const started = performance.now()
    await makeGpu(join(dir, 'history'), 0, days)
    // The others did the same: what is asked for is neither faster nor slower for it.
    for (const { name } of TIERS)
      for (let gpu = 1; gpu < gpus; gpu++)
        cpSync(join(dir, 'history', name, gpuId(0)), join(dir, 'history', name, gpuId(gpu)), { recursive: true })
    console.log(`made ${days} days of ${gpus} GPUs in ${Math.round((performance.now() - started) / 1000)} s`)
  }
  for (const { name } of TIERS) console.log(`${name.padEnd(6)} ${describe(join(dir, 'history', name))}`)
  for (const span of [1, 7, 30, days]) for (const points of [1500, null]) await inOwnProcess({ dir, gpus, span, points })
  if (!given.keep) rmSync(dir, { recursive: true, force: true })
  console.log(`load of the machine: ${execFileSync('uptime').toString().split('average:')[1]?.trim()}`)
}

async function makeGpu(root, gpu, days) {
  const random = seeded(gpu + 1)
  const table = seriesOf(gpuId(gpu)).all
  /** Per tier whose files cover more than a day: the file that is being filled. */
  const open = new Map()
  const coarse = TIERS.filter(({ period }) => period !== 'day')
  for (let day = days; day >= 1; day--) {
    const from = END - day * DAY_MS
    const isFine = day <= KEPT_FINEST_DAYS
    const minutes = new Rows(60_000, table.length)
    const fine = isFine ? new Rows(FINEST.stepMs, table.length) : null
    // The machine was off for two days.
    if (day !== 40 && day !== 39) fill(fine ?? minutes, from, random)
    if (fine) minutes.addAll(fine)
    if (minutes.length === 0) continue
    if (fine) await write(root, FINEST, gpu, from, fine)
    await write(root, TIERS[1], gpu, from, minutes)
    for (const tier of coarse) {
      const name = periodOf(tier, from)
      const before = open.get(tier)
      if (before && before.name !== name) await write(root, tier, gpu, before.from, before.rows)
      if (before?.name !== name) open.set(tier, { name, from, rows: new Rows(tier.stepMs, table.length) })
      open.get(tier).rows.addAll(minutes)
    }
  }
  for (const [tier, { from, rows }] of open) await write(root, tier, gpu, from, rows)
}

function fill(rows, from, random) {
  const table = seriesOf(gpuId(0)).all
  const samples = rows.stepMs / 1000
  const level = new Map()
  for (let at = from; at < from + DAY_MS; at += rows.stepMs)
    table.forEach(({ column }, series) => {
      const still = STILL[column]
      if (still !== undefined) rows.add(at, series, { count: samples, sum: still * samples, min: still, max: still })
      const moves = MOVES[column]
      if (!moves) return
      const [low, high, grain] = moves
      const before = level.get(series) ?? random()
      const now = Math.min(1, Math.max(0, before + (random() - 0.5) * 0.1))
      level.set(series, now)
      const round = (value) => Math.round((low + (high - low) * Math.min(1, Math.max(0, value))) / grain) * grain
      const [min, max] = [round(now - random() * 0.1), round(now + random() * 0.1)]
      rows.add(at, series, { count: samples, sum: ((min + max) / 2) * samples, min, max })
    })
}

async function write(root, tier, gpu, at, rows) {
  const path = join(root, tierFile(tier, gpuId(gpu), at))
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, await parquetOf(gpuId(gpu), rows))
}

/** Each question in a fresh process: what it adds to the memory is then its own. */
function inOwnProcess(question) {
  return new Promise((resolve, reject) => {
    const child = fork(new URL(import.meta.url), ['--child', JSON.stringify(question)], { execArgv: ['--expose-gc'] })
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`exit code ${code}`))))
  })
}

async function askAll({ dir, gpus, span, points }) {
  const damaged = []
  const history = createLongHistory({ logDir: dir, memory: null, isFilled: () => false, onDamage: (path) => damaged.push(path) })
  const ask = async () => {
    let bytes = 0
    let answer
    for (let gpu = 0; gpu < gpus; gpu++) {
      answer = await history.query({
        gpu: gpuId(gpu),
        fields: FIELDS,
        from: END - span * DAY_MS,
        to: END - 1,
        stepMs: null,
        ...(points ? { points } : {}),
      })
      bytes += JSON.stringify(answer).length
    }
    return { bytes, answer }
  }
  globalThis.gc()
  const before = process.memoryUsage.rss()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 2)
  const times = []
  const cpu = []
  let last
  for (let turn = 0; turn < 5; turn++) {
    const from = performance.now()
    const used = process.cpuUsage()
    last = await ask()
    const { user, system } = process.cpuUsage(used)
    times.push(performance.now() - from)
    cpu.push((user + system) / 1000)
    most = Math.max(most, process.memoryUsage.rss())
  }
  clearInterval(timer)
  const middle = (list) => Math.round([...list].sort((a, b) => a - b)[list.length >> 1])
  const { answer, bytes } = last
  const gaps = answer.data[1].filter((value) => value === null).length
  console.log(
    `${String(span).padStart(3)} days × ${gpus} GPUs × ${FIELDS.length} series${points ? ` at most ${points} points` : ''}: ` +
      `first ${Math.round(times[0])} ms, median of 5 ${middle(times)} ms (CPU ${middle(cpu)} ms), +${((most - before) / 1024 ** 2).toFixed(0)} MB, ` +
      `${answer.data[0].length} points of ${answer.stepMs / 1000} s, ${gaps} in gaps, ${(bytes / 1024 ** 2).toFixed(1)} MB of JSON${damaged.length ? `, damaged: ${damaged}` : ''}`,
  )
}

function describe(folder) {
  let files = 0
  let bytes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      files++
      bytes += statSync(join(entry.parentPath, entry.name)).size
    }
  return `${files} files, ${(bytes / 1024 ** 2).toFixed(0)} MB`
}

function seeded(seed) {
  let state = seed * 0x9e3779b9
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296
  }
}
