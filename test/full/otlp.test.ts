/**
 * OTLP into a receiver made of OpenTelemetry's own classes (the package opentelemetry-proto), which refuses what the protocol does not
 * have. Debian's Prometheus 2.42 and VictoriaMetrics 1.79 take no OTLP yet.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HubEvent, Log } from '../../src/core/kinds.ts'
import { createExporter } from '../../src/exporter/exporter.ts'
import { readExposition } from '../../src/exporter/exposition.contract.ts'
import { FIXED_STATE, fixedTraining, naming } from '../../src/exporter/fixed-state.contract.ts'
import { createPush } from '../../src/push/push.ts'
import { until } from '../program.ts'
import { settingsWith } from '../push-stand.ts'
import { pythonWith } from './python-packages.ts'

const quiet = () => undefined
const LOG: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => LOG }
const CUMULATIVE = 2
const RECEIVER = fileURLToPath(new URL('otlp-receiver.py', import.meta.url))
const PACKAGES = {
  name: 'opentelemetry',
  packages: ['opentelemetry-proto'],
  imports: 'import opentelemetry.proto.collector.metrics.v1.metrics_service_pb2',
  installMs: 180_000,
  neededBytes: 256 * 1024 ** 2,
}

interface Understood {
  readonly resource: Readonly<Record<string, string>>
  readonly name: string
  readonly unit: string
  readonly kind: 'gauge' | 'sum' | 'histogram'
  readonly monotonic: boolean | null
  readonly temporality: number | null
  readonly points: readonly {
    readonly attributes: Readonly<Record<string, string>>
    readonly value?: string
    readonly start?: number
    readonly count?: number
    readonly sum?: number
    readonly counts?: readonly number[]
    readonly bounds?: readonly number[]
  }[]
}

interface Said {
  readonly port?: number
  readonly refused?: string
  readonly metrics?: readonly Understood[]
}

describe('OTLP', () => {
  let missing: string | null = null
  let receiver: ChildProcess | undefined
  const said: Said[] = []
  let got: readonly Understood[] = []
  const exporter = createExporter({ naming, state: FIXED_STATE, sets: ['native'], maxProcesses: 8, training: fixedTraining() })

  beforeAll(async () => {
    const found = await pythonWith(PACKAGES)
    if ('missing' in found) {
      missing = found.missing
      return
    }
    receiver = spawn(found.python, [RECEIVER], { stdio: ['ignore', 'pipe', 'pipe'] })
    receiver.stderr?.on('data', (data) => process.stderr.write(data))
    if (receiver.stdout) createInterface(receiver.stdout).on('line', (line) => said.push(JSON.parse(line) as Said))
    const port = await until('it listens', () => said[0]?.port)
    const settings = settingsWith({ 'push.otlp.url': `http://127.0.0.1:${port}/v1/metrics`, 'push.interval': 1 })
    const [sink] = createPush({ state: FIXED_STATE, settings, families: () => exporter.families(), log: LOG, version: '1.2.3' })
    // Traffic is told as a total, which begins with the second look.
    for (const laterMs of [0, 1000]) sink?.accept(tickAt(FIXED_STATE.now() + laterMs))
    await until('a request was taken', () => said.length > 2)
    await sink?.close()
    got = said.at(-1)?.metrics ?? []
  }, 300_000)

  afterAll(() => {
    receiver?.kill()
  })

  it('is taken by OpenTelemetry’s own classes, without a field that they do not know', ({ skip }) => {
    if (missing !== null) skip(missing)
    expect(said.flatMap(({ refused }) => refused ?? [])).toEqual([])
    expect(got.length).toBeGreaterThan(30)
    expect(got[0]?.resource).toMatchObject({ 'service.name': 'gpuwarden', 'service.version': expect.any(String), 'host.name': 'node-7' })
  })

  it('has the names, kinds and units of the semantic conventions', ({ skip }) => {
    if (missing !== null) skip(missing)
    const shapes = Object.fromEntries(got.map(({ name, kind, unit, monotonic }) => [name, [kind, unit, monotonic]]))
    expect(shapes).toMatchObject({
      'hw.gpu.memory.limit': ['sum', 'By', false],
      'hw.gpu.memory.usage': ['sum', 'By', false],
      'hw.gpu.memory.utilization': ['gauge', '1', null],
      'hw.gpu.utilization': ['gauge', '1', null],
      'hw.gpu.io': ['sum', 'By', true],
      'hw.errors': ['sum', '{error}', true],
      'hw.energy': ['sum', 'J', true],
      'hw.power': ['gauge', 'W', null],
      'hw.temperature': ['gauge', 'Cel', null],
      'hw.fan.speed_ratio': ['gauge', '1', null],
    })
    for (const { name, points } of got.filter((one) => one.name.startsWith('hw.')))
      for (const { attributes } of points) expect(attributes, name).toMatchObject({ 'hw.id': expect.any(String) })
    for (const { name, kind, temporality, points } of got.filter((one) => one.kind !== 'gauge')) {
      expect(temporality, name).toBe(CUMULATIVE)
      if (kind === 'sum') for (const { start } of points) expect(start, name).toBeGreaterThan(0)
    }
  })

  it('says the same as the page, in all that has our own names', ({ skip }) => {
    if (missing !== null) skip(missing)
    const page = readExposition(exporter.render())
    const key = (labels: Readonly<Record<string, string>>) => JSON.stringify(Object.entries(labels).sort())
    const compared = got.filter(
      ({ name, kind }) => kind !== 'histogram' && page.types.has(name) && !/^gpuwarden_(scrape|process)_/.test(name),
    )
    for (const { name, points } of compared) {
      const scraped = page.series.filter((one) => one.name === name).map(({ labels, value }) => [key(labels), value])
      expect(points.map(({ attributes, value }) => [key(attributes), number(value)]).sort(), name).toEqual(scraped.sort())
    }
    expect(compared.map(({ name }) => name)).toEqual(expect.arrayContaining(['training_loss', 'learning_rate', 'gpuwarden_up']))
  })

  it('counts steps between bounds as the page counts them up to bounds', ({ skip }) => {
    if (missing !== null) skip(missing)
    const page = readExposition(exporter.render())
    const [histogram, ...others] = got.filter(({ kind }) => kind === 'histogram')
    expect(others).toEqual([])
    for (const { attributes, counts = [], bounds = [], count, sum } of histogram?.points ?? []) {
      const of = (suffix: string) =>
        page.series.filter(
          ({ name, labels }) =>
            name === `training_step_duration_seconds${suffix}` && labels.run === attributes.run && labels.rank === attributes.rank,
        )
      let upTo = 0
      expect(counts).toHaveLength(bounds.length + 1)
      expect(of('_bucket').map(({ value }) => value)).toEqual(counts.map((one) => (upTo += one)))
      expect([of('_count')[0]?.value, of('_sum')[0]?.value]).toEqual([count, sum])
    }
    expect(histogram?.points.length).toBeGreaterThan(1)
  })
})

function tickAt(at: number): HubEvent {
  const gpus = FIXED_STATE.gpus().flatMap(({ sample }) => (sample === null ? [] : { ...sample, at }))
  return { type: 'tick', tick: { seq: 1, at, source: 'nvidia', provenance: 'live', gpus, processes: [], host: null, events: [] } }
}

/** Python writes inf and nan. */
function number(text: string | undefined): number {
  return text === 'inf' ? Number.POSITIVE_INFINITY : text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text)
}
