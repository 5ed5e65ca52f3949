// How many samples a second `gpuwarden detect` takes from JSONL: the real program on a recording made for it.
// node bench/detect.mjs [samples]
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gpuRecord, NO_READINGS } from '../dist/core/record.js'
import { random } from './accuracy/generator.mjs'

const PROGRAM = fileURLToPath(new URL('../bin/gpuwarden.js', import.meta.url))
const GPUS = 4
const GOAL = 50_000
const TOTAL = 80 * 1024 ** 3
const wanted = Number(process.argv[2] ?? 400_000)

function recording(samples) {
  const draw = random(7)
  const lines = []
  for (let i = 0; i < samples / GPUS; i++)
    for (let index = 0; index < GPUS; index++) {
      const at = 1_790_000_000_000 + i * 100
      const used = Math.round((0.4 + 0.1 * index + 0.05 * ((i % 300) / 300) + 0.001 * draw.normal()) * TOTAL)
      const sample = {
        ...NO_READINGS,
        kind: 'gpu',
        at,
        gpu: `GPU-${index}`,
        state: 'ok',
        stateReason: null,
        slowAt: null,
        utilizationRatio: 0.9 + 0.05 * Math.sin(i),
        memoryUtilizationRatio: 0.4,
        memoryUsedBytes: used,
        memoryTotalBytes: TOTAL,
        memoryFreeBytes: TOTAL - used,
        temperatureCelsius: 60 + (i % 3),
        powerWatts: 400 + (i % 17),
        smClockHertz: 1.7e9,
        memoryClockHertz: 2.6e9,
        performanceState: 0,
        clockEventReasons: 0,
        pcieTxBytesPerSecond: 1e9,
        pcieRxBytesPerSecond: 1e9,
        processes: [],
      }
      const process = {
        pid: 100 + index,
        type: 'compute',
        memoryUsedBytes: used,
        smRatio: 0.9,
        memoryRatio: null,
        encoderRatio: null,
        decoderRatio: null,
      }
      lines.push(
        JSON.stringify(gpuRecord(sample, { index, name: 'H100', provenance: 'live' }, [{ ...process, gpu: sample.gpu, info: null }])),
      )
    }
  return `${lines.join('\n')}\n`
}

function secondsOf(path) {
  const begin = process.hrtime.bigint()
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'detect', path, '--json'], { stdio: ['ignore', 'ignore', 'pipe'] })
  if (status !== 0) throw new Error(`detect ended with ${status}: ${stderr}`)
  return Number(process.hrtime.bigint() - begin) / 1e9
}

const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-bench-'))
try {
  const [small, large] = [join(folder, 'gpu_metrics_small.jsonl'), join(folder, 'gpu_metrics_large.jsonl')]
  writeFileSync(small, recording(GPUS))
  writeFileSync(large, recording(wanted))
  const start = Math.min(secondsOf(small), secondsOf(small))
  const seconds = Math.min(secondsOf(large), secondsOf(large), secondsOf(large))
  const rate = wanted / seconds
  console.table({
    samples: wanted,
    'bytes a line': Math.round(statSync(large).size / wanted),
    seconds: seconds.toFixed(2),
    'of these to start': start.toFixed(2),
    'samples a second': Math.round(rate),
    'without the start': Math.round(wanted / (seconds - start)),
    goal: GOAL,
  })
  process.exitCode = rate >= GOAL ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
