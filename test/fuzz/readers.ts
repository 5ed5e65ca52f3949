/** Every reader of bytes that others write, with examples of what it reads and what must hold whatever it gets. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/agent/config.ts'
import { decodeJournal, encodeLine } from '../../src/alerts/journal-line.ts'
import { EXIT, Failure } from '../../src/core/failure.ts'
import { nvidiaSmiParser } from '../../src/core/recording/nvidia-smi-csv.ts'
import {
  openRecording,
  parseDeviceLine,
  parseEventLine,
  parseGpuLine,
  parseHostLine,
  parseStepLine,
} from '../../src/core/recording/recording.ts'
import { parseMetrics } from '../../src/sources/amd/gpu-metrics.ts'
import { metricsTable } from '../../src/sources/amd/metrics-table.fixture.ts'
import { chipThrottlers, residencyReasons, throttleReasons } from '../../src/sources/amd/throttle.ts'
import { entriesIn } from '../../src/training/journal.ts'
import { OutputParser } from '../../src/training/output-parser.ts'
import { parseReceivedStep } from '../../src/training/step-line.ts'
import { EventReader } from '../../src/tui/sse.ts'
import { serverReaders } from './server-readers.ts'
import { spoolReader } from './spool-reader.ts'
import { sysfsTrees } from './sysfs-tree.ts'

export interface FuzzReader {
  readonly name: string
  readonly examples: readonly (string | Uint8Array)[]
  /** Throws, or rejects, when what must hold does not. */
  read(bytes: Buffer): unknown
  /** After the last one. */
  close?(): Promise<unknown>
}

const LINES = [
  '{"timestamp":"2026-01-01T00:00:00.000Z","gpu_uuid":"GPU-1","gpu_index":0,"utilization":0.5,"memory_used_mb":100,"temperature":60,"processes":[]}',
  '{"timestamp":1760000000000,"hostname":"box","cpu_percent":12.5,"ram_used_mb":1000}',
  '{"timestamp":1760000000,"event":"xid","gpu_uuid":"GPU-1","code":79,"message":"fell off","origin":"nvidia"}',
  '{"timestamp":"2026-01-01T00:00:00Z","step":3,"loss":NaN,"learning_rate":1e-4,"run":"r","rank":0,"custom":{"accuracy":0.5}}',
  '{"timestamp":"2026-01-01T00:00:00Z","id":"GPU-1","index":0,"label":"0","name":"NVIDIA H200","vendor":"nvidia","memoryTotalBytes":1}',
]

const CSV = [
  'timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], temperature.gpu',
  '2026/01/01 00:00:00.000, 0, GPU-1, NVIDIA H200, 55 %, 1000 MiB, 60',
  '2026/01/01 00:00:01.000, 0, GPU-1, NVIDIA H200, [N/A], [Not Supported], 61',
].join('\n')

const CONFIG = `interval: 1
log:
  dir: ./logs
  rotate_mb: 8
email: { server: smtp.example.org, port: 587, from: a@example.org, to: [b@example.org] }
channels:
  team: { type: slack, url: "https://hooks.example.org/x" }
alerts:
  quiet_hours: [{ from: "22:00", to: "07:00" }]
  rules: { memory: { threshold: 0.8, clear: 0.7 } }
`

/** A time that every screen and report can print. */
function mustBeTime(at: number): void {
  if (!Number.isFinite(new Date(at).getTime())) throw new Error(`${at} is not a time`)
}

function eachLine(bytes: Buffer, read: (line: string) => unknown): void {
  for (const line of bytes.toString().split('\n')) read(line)
}

function journalEntry(body: string): string {
  return `${JSON.stringify({ run: 'r', at: 1_760_000_000_000, bytes: body.length })}\n${body}\n`
}

/** One folder for all: a file per call would be slower than what is tested. */
const scratch = mkdtempSync(join(tmpdir(), 'gpuwarden-fuzz-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))

export const READERS: readonly FuzzReader[] = [
  {
    name: 'recording-lines',
    examples: LINES,
    read: (bytes) =>
      eachLine(bytes, (line) => {
        for (const parse of [parseGpuLine, parseHostLine, parseEventLine, parseStepLine, parseDeviceLine]) {
          const parsed = parse(line)
          if (typeof parsed === 'string') continue
          mustBeTime('sample' in parsed ? (parsed.sample as { at: number }).at : (parsed as { at: number }).at)
        }
      }),
  },
  {
    name: 'recording-file',
    examples: [LINES.join('\n'), `${LINES[0]}\n${LINES[0]}\n`],
    async read(bytes) {
      const path = join(scratch, 'gpu_metrics_20260101_000000.jsonl')
      writeFileSync(path, bytes)
      // What is no recording at all is refused in words.
      const recording = await openRecording(path).catch(() => [])
      for await (const item of recording) mustBeTime((item as { at: number }).at)
    },
  },
  {
    name: 'nvidia-smi-csv',
    examples: [CSV],
    read(bytes) {
      const parse = nvidiaSmiParser()
      eachLine(bytes, (line) => {
        const parsed = parse(line)
        if (parsed !== null && typeof parsed !== 'string') mustBeTime(parsed.sample.at)
      })
    },
  },
  {
    name: 'alert-journal',
    examples: [
      encodeLine([['format', 1]]) + encodeLine([['alert/a', { phase: 'firing' }], ['channel/mail/told/a']]) + encodeLine([['alert/a']]),
    ],
    read(bytes) {
      const { entries, damage } = decodeJournal(bytes.toString())
      if (entries.size > bytes.length) throw new Error('more than there is')
      if (damage === '') throw new Error('damage without a word')
    },
  },
  {
    name: 'step-journal',
    examples: [journalEntry('{"seq":1,"step":1}') + journalEntry('{"seq":2,"step":2}\n{"seq":3,"step":3}')],
    read(bytes) {
      let size = 0
      for (const { body } of entriesIn(bytes)) size += body.length
      if (size > bytes.length) throw new Error('more than there is')
    },
  },
  {
    name: 'posted-steps',
    examples: [
      '{"seq":1,"rank":0,"step":1,"t":1760000000000,"loss":2.31,"lr":0.0003,"phases":{"data":0.01},"alloc":{"allocated":1},"custom":{"a":1}}',
    ],
    read: (bytes) =>
      eachLine(bytes, (line) => {
        const parsed = parseReceivedStep(line, 'r', 1_760_000_000_000)
        if (typeof parsed === 'string') return
        mustBeTime(parsed.step.at)
        if (!Number.isSafeInteger(parsed.step.step) || !Number.isSafeInteger(parsed.step.rank)) throw new Error('a step without a number')
        JSON.stringify(parsed.step)
      }),
  },
  {
    name: 'config-file',
    examples: [CONFIG, JSON.stringify({ interval: 1, log: { dir: './logs' } }), 'a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n'],
    read(bytes) {
      const file = join(scratch, 'config.yaml')
      writeFileSync(file, bytes, { mode: 0o600 })
      try {
        loadConfig({ file, env: {} })
      } catch (error) {
        // Anything else would be reported as an internal error.
        if (!(error instanceof Failure && error.exitCode === EXIT.usage)) throw error
      }
    },
  },
  {
    name: 'printed-output',
    examples: [
      "{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 3e-4, 'epoch': 0.5}\n 12%|█▏        | 120/1000 [00:10<01:13, 11.9it/s]\r",
      'step 100 | loss 2.3 | lr 3e-4\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 2.1\nCUDA out of memory\n',
      '{"step": 5, "loss": 1.5}\n',
    ],
    read(bytes) {
      const parser = new OutputParser()
      for (const found of [...parser.feed(bytes.toString()), ...parser.feed('\n')])
        if (!Number.isSafeInteger(found.step) || found.step < 0) throw new Error(`step ${found.step}`)
    },
  },
  {
    name: 'event-stream',
    examples: ['id: boot-1\nevent: tick\ndata: {"type":"tick"}\n\n', 'retry: 1000\n: comment\ndata: a\ndata: b\n\n'],
    read(bytes) {
      const reader = new EventReader()
      const text = bytes.toString()
      const half = Math.floor(text.length / 2)
      for (const part of [text.slice(0, half), text.slice(half)]) for (const event of reader.feed(part)) JSON.stringify(event)
    },
  },
  {
    name: 'amd-gpu-metrics',
    examples: ['1.0', '1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '1.7', '1.8', '2.1', '2.4', '3.0'].map((version) =>
      metricsTable(version, {}, 1),
    ),
    read(bytes) {
      const metrics = parseMetrics(bytes)
      if (metrics === null) return
      const { energyJoules, xgmiReadBytes, xgmiWrittenBytes, partitions } = metrics
      const reasons = [throttleReasons(metrics, chipThrottlers('gfx1100'), 100), residencyReasons(metrics, metrics)]
      for (const value of [energyJoules, xgmiReadBytes, xgmiWrittenBytes, ...reasons, ...(partitions ?? []).flat()])
        if (value !== null && !(Number.isFinite(value) && value >= 0)) throw new Error(`a reading is ${value}`)
    },
  },
  ...sysfsTrees,
  spoolReader,
  ...serverReaders,
]
