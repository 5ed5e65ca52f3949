/** Pushing, against receivers that are really there. */
import { afterEach, describe, expect, it } from 'vitest'
import type { HubEvent, Log, Sink } from '../src/core/kinds.ts'
import { createExporter } from '../src/exporter/exporter.ts'
import { FIXED_STATE, fixedTraining, naming } from '../src/exporter/fixed-state.contract.ts'
import { readWriteRequest } from '../src/push/protobuf.fixture.ts'
import { createPush } from '../src/push/push.ts'
import { type PushSettings, pushSettings } from '../src/push/settings.ts'
import { unsnappy } from '../src/push/snappy.fixture.ts'
import { RunningAgent, until } from './program.ts'
import { PushStand, settingsWith } from './push-stand.ts'

const quiet = () => undefined
const LOG: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => LOG }
const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

async function stand(answer: Parameters<typeof PushStand.open>[0]): Promise<PushStand> {
  const made = await PushStand.open(answer)
  open.push(made)
  return made
}

function push(settings: Partial<PushSettings>): Required<Sink> {
  const exporter = createExporter({ naming, state: FIXED_STATE, sets: ['native', 'dcgm'], maxProcesses: 8, training: fixedTraining() })
  const [sink] = createPush({
    state: FIXED_STATE,
    settings: settingsWith({ 'push.interval': 0.05, 'push.mlflow.interval': 0.05, ...settings }),
    families: () => exporter.families(),
    log: LOG,
    version: '1.2.3',
  })
  if (sink === undefined) throw new Error('no sink was made')
  open.push(sink)
  return sink
}

const TICK: HubEvent = {
  type: 'tick',
  tick: {
    seq: 1,
    at: FIXED_STATE.now(),
    source: 'nvidia',
    provenance: 'live',
    gpus: FIXED_STATE.gpus().flatMap(({ sample }) => sample ?? []),
    processes: [],
    host: FIXED_STATE.host()?.sample ?? null,
    events: [],
  },
}

describe('createPush', () => {
  it('makes no sink when no receiver is named', () => {
    expect(createPush({ state: FIXED_STATE, settings: settingsWith({}), families: () => [], log: LOG, version: '1' })).toEqual([])
  })

  it('reads pairs from text and refuses what is no address or no label', () => {
    expect(pushSettings['push.labels'].schema.parse('cluster=a, team=b=c')).toEqual({ cluster: 'a', team: 'b=c' })
    expect(pushSettings['push.labels'].schema.safeParse('__name__=a').success).toBe(false)
    expect(pushSettings['push.otlp.url'].schema.safeParse('file:///tmp').success).toBe(false)
  })
})

describe('remote write', () => {
  it('pushes what a scrape would have got', async () => {
    const receiver = await stand(() => ({ status: 204 }))
    push({
      'push.remote_write.url': `${receiver.url}/api/v1/write`,
      'push.labels': { cluster: 'a' },
      'push.remote_write.headers': { 'x-scope-orgid': 't' },
    })
    const request = await until('something was pushed', () => receiver.received[0])
    expect(request).toMatchObject({ method: 'POST', path: '/api/v1/write' })
    expect(request.headers).toMatchObject({
      'content-type': 'application/x-protobuf',
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
      'x-scope-orgid': 't',
      'user-agent': 'gpuwarden/1.2.3',
    })
    const series = readWriteRequest(unsnappy(request.body))
    expect(series.length).toBeGreaterThan(200)
    expect(
      series.every(({ labels }) => labels.job === 'gpuwarden' && labels.instance === FIXED_STATE.hostname && labels.cluster === 'a'),
    ).toBe(true)
  })

  it('puts a name and password of the address into a header', async () => {
    const receiver = await stand(() => ({ status: 200 }))
    push({ 'push.remote_write.url': receiver.url.replace('http://', 'http://ada:s%40crt@') })
    const request = await until('something was pushed', () => receiver.received[0])
    expect(request.headers.authorization).toBe(`Basic ${Buffer.from('ada:s@crt').toString('base64')}`)
  })

  it('keeps what a receiver that is away could not take, within bounds, and counts the rest', async () => {
    let isAway = true
    const receiver = await stand(() => ({ status: isAway ? 503 : 200 }))
    const sink = push({ 'push.remote_write.url': receiver.url, 'push.queue': 3 })
    await until('something was dropped', () => sink.dropped().count > 500)
    expect(sink.dropped().reason).toMatch(/HTTP 503/)
    isAway = false
    await until('the queue was sent', () => receiver.received.length > 5)
    const times = receiver.received.slice(-3).map(({ body }) => readWriteRequest(unsnappy(body))[0]?.timestamp ?? 0)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })

  it('says on leaving that its series have ended', async () => {
    const receiver = await stand(() => ({ status: 200 }))
    const sink = push({ 'push.remote_write.url': receiver.url })
    await until('something was pushed', () => receiver.received[0])
    await sink.close()
    const last = readWriteRequest(unsnappy(receiver.received.at(-1)?.body ?? Buffer.alloc(0)))
    expect(last.length).toBeGreaterThan(200)
    expect(last.every(({ bits }) => bits === 0x7ff0000000000002n)).toBe(true)
  })
})

interface OtlpPoint {
  readonly attributes: { readonly key: string; readonly value: { readonly stringValue: string } }[]
  readonly asDouble: number
  readonly timeUnixNano: string
  readonly bucketCounts: string[]
  readonly count: string
}

interface OtlpBody {
  readonly resourceMetrics: {
    readonly resource: { readonly attributes: OtlpPoint['attributes'] }
    readonly scopeMetrics: {
      readonly metrics: { readonly name: string; readonly unit: string; readonly [form: string]: unknown }[]
    }[]
  }[]
}

describe('OTLP', () => {
  it("pushes GPUs under OpenTelemetry's names, and training under ours", async () => {
    const receiver = await stand(() => ({ status: 200, body: { partialSuccess: {} } }))
    const sink = push({ 'push.otlp.url': `${receiver.url}/v1/metrics`, 'push.otlp.headers': { 'api-key': 'k' } })
    sink.accept(TICK)
    const request = await until('something was pushed', () => receiver.received[0])
    expect(request.path).toBe('/v1/metrics')
    expect(request.headers).toMatchObject({ 'content-type': 'application/json', 'api-key': 'k' })
    const body = JSON.parse(request.body.toString()) as OtlpBody
    const metrics = new Map(body.resourceMetrics[0]?.scopeMetrics[0]?.metrics.map((metric) => [metric.name, metric]))
    const points = (name: string, form: string) => (metrics.get(name)?.[form] as { dataPoints: OtlpPoint[] } | undefined)?.dataPoints ?? []
    expect([...metrics.keys()]).toEqual(
      expect.arrayContaining([
        'hw.gpu.memory.limit',
        'hw.gpu.memory.usage',
        'hw.gpu.memory.utilization',
        'hw.gpu.utilization',
        'hw.energy',
        'hw.power',
        'hw.temperature',
        'training_loss',
      ]),
    )
    expect([...metrics.keys()].filter((name) => name.startsWith('gpu_util') || name.startsWith('DCGM'))).toEqual([])
    expect(metrics.get('hw.gpu.memory.usage')).toMatchObject({ unit: 'By', sum: { isMonotonic: false, aggregationTemporality: 2 } })
    expect(metrics.get('hw.energy')).toMatchObject({ unit: 'J', sum: { isMonotonic: true } })
    // The memory of a MIG instance is its card's: what adds up has the card alone.
    const idOf = (point: OtlpPoint) => point.attributes.find(({ key }) => key === 'hw.id')?.value.stringValue
    const instances = FIXED_STATE.gpus().flatMap(({ info }) => (info.mig === null ? [] : [info.id]))
    expect(instances).toHaveLength(1)
    expect(points('hw.gpu.memory.usage', 'sum').map(idOf)).not.toContain(instances[0])
    expect(points('hw.gpu.memory.utilization', 'gauge').map(idOf)).toContain(instances[0])
    const [general] = points('hw.gpu.utilization', 'gauge')
    const attributes = Object.fromEntries(general?.attributes.map(({ key, value }) => [key, value.stringValue]) ?? [])
    const first = FIXED_STATE.gpus().find(({ live }) => live)
    expect(attributes).toMatchObject({ 'hw.id': first?.info.id, 'hw.vendor': first?.info.vendor, 'hw.gpu.task': 'general' })
    expect(general?.asDouble).toBe(first?.sample?.utilizationRatio)
    expect(general?.timeUnixNano).toMatch(/^\d{19}$/)
    const [steps] = points('training_step_duration_seconds', 'histogram')
    expect(steps?.bucketCounts.reduce((sum, count) => sum + Number(count), 0)).toBe(Number(steps?.count))
    expect(steps?.bucketCounts.every((count) => Number(count) >= 0)).toBe(true)
  })

  it('sends NaN as the text that protobuf has for it, and nothing for what is unknown', async () => {
    const receiver = await stand(() => ({ status: 200 }))
    push({ 'push.otlp.url': receiver.url })
    const text = (await until('something was pushed', () => receiver.received[0])).body.toString()
    expect(text).not.toMatch(/"asDouble":null/)
    expect(text).toContain('"asDouble":"NaN"')
  })
})

describe('MLflow', () => {
  /** As much of the tracking server as is asked for. */
  const server = ({ path, body }: { path: string; body: Buffer }) => {
    if (path.startsWith('/api/2.0/mlflow/experiments/get-by-name'))
      return { status: 404, body: { error_code: 'RESOURCE_DOES_NOT_EXIST', message: 'no such experiment' } }
    if (path.endsWith('experiments/create')) return { status: 200, body: { experiment_id: '7' } }
    if (path.endsWith('runs/create')) {
      const { experiment_id: experiment } = JSON.parse(body.toString()) as { experiment_id: string }
      return experiment === '7' ? { status: 200, body: { run: { info: { run_id: 'made' } } } } : { status: 400 }
    }
    return { status: 200, body: {} }
  }

  it('makes experiment and run, writes system metrics, and ends the run', async () => {
    const receiver = await stand(server)
    const sink = push({ 'push.mlflow.url': `${receiver.url}/`, 'push.mlflow.username': 'ada', 'push.mlflow.password': 'pw' })
    sink.accept(TICK)
    sink.accept(TICK)
    const batch = await until('a batch was written', () => receiver.received.find(({ path }) => path.endsWith('log-batch')))
    await sink.close()
    expect(receiver.received.map(({ path }) => path.replace('/api/2.0/mlflow/', '').replace(/\?.*/, ''))).toEqual([
      'experiments/get-by-name',
      'experiments/create',
      'runs/create',
      'runs/log-batch',
      'runs/update',
    ])
    expect(batch.headers.authorization).toBe(`Basic ${Buffer.from('ada:pw').toString('base64')}`)
    const { run_id: run, metrics } = JSON.parse(batch.body.toString()) as {
      run_id: string
      metrics: { key: string; value: number; step: number; timestamp: number }[]
    }
    expect(run).toBe('made')
    const first = FIXED_STATE.gpus().find(({ live, info }) => live && info.mig === null)
    const value = (name: string) => metrics.find(({ key }) => key === `system/gpu_${first?.info.label}_${name}`)?.value
    expect(value('utilization_percentage')).toBeCloseTo((first?.sample?.utilizationRatio ?? 0) * 100)
    expect(value('memory_usage_megabytes')).toBeCloseTo((first?.sample?.memoryUsedBytes ?? 0) / 1e6)
    expect(value('power_usage_watts')).toBe(first?.sample?.powerWatts)
    // Against the limit in force, as MLflow itself reckons.
    expect(first?.info.powerLimitEnforcedWatts).not.toBe(first?.info.powerLimitWatts)
    expect(value('power_usage_percentage')).toBeCloseTo(
      ((first?.sample?.powerWatts ?? 0) / (first?.info.powerLimitEnforcedWatts ?? 0)) * 100,
    )
    expect(metrics.map(({ key }) => key)).toEqual(
      expect.arrayContaining([
        'system/gpu_0_memory_usage_percentage',
        'system/gpu_0_power_usage_percentage',
        'system/cpu_utilization_percentage',
      ]),
    )
    expect(new Set(metrics.map(({ key }) => key)).size).toBe(metrics.length)
    expect(metrics.every(({ timestamp, step }) => Number.isInteger(timestamp) && step === 0)).toBe(true)
  })

  it('attaches to a run that is named, and leaves it open', async () => {
    const receiver = await stand(() => ({ status: 200, body: {} }))
    const sink = push({ 'push.mlflow.url': receiver.url, 'push.mlflow.run_id': 'theirs', 'push.mlflow.token': 'tok' })
    sink.accept(TICK)
    const request = await until('a batch was written', () => receiver.received[0])
    await sink.close()
    expect(request.headers.authorization).toBe('Bearer tok')
    expect(receiver.received.every(({ path }) => path.endsWith('runs/log-batch'))).toBe(true)
    expect(JSON.parse(request.body.toString())).toMatchObject({ run_id: 'theirs' })
  })
})

describe('the agent', () => {
  it('pushes to every receiver that is configured, and counts what it drops', async () => {
    const receiver = await stand(({ path }) => ({ status: path === '/otlp' ? 400 : 200, body: {} }))
    const agent = await RunningAgent.start(['--source', 'demo'], {
      GPUWARDEN_PUSH_INTERVAL: '1',
      GPUWARDEN_PUSH_REMOTE_WRITE_URL: `${receiver.url}/write`,
      GPUWARDEN_PUSH_OTLP_URL: `${receiver.url}/otlp`,
      GPUWARDEN_PUSH_MLFLOW_URL: receiver.url,
      GPUWARDEN_PUSH_MLFLOW_INTERVAL: '1',
      MLFLOW_RUN_ID: 'r1',
    })
    try {
      const request = await until('GPUs were pushed', () =>
        receiver.received.find(
          ({ path, body }) =>
            path === '/write' && readWriteRequest(unsnappy(body)).some(({ labels }) => labels.__name__ === 'gpu_utilization_percent'),
        ),
      )
      expect(
        readWriteRequest(unsnappy(request.body)).find(({ labels }) => labels.__name__ === 'gpu_utilization_percent')?.labels,
      ).toMatchObject({ job: 'gpuwarden', simulated: 'true' })
      await until('MLflow got something', () => receiver.received.some(({ path }) => path.endsWith('runs/log-batch')))
      await until('the refused are counted', async () => /gpuwarden_dropped_total\{sink="otlp"\} [1-9]/.test(await agent.text('/metrics')))
      expect(await agent.text('/metrics')).toContain('gpuwarden_dropped_total{sink="remote_write"} 0\n')
    } finally {
      await agent.stop()
    }
  })
})
