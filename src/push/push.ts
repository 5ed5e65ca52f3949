/** The sinks that bring metrics to a receiver, for machines that cannot be scraped. */
import type { AgentState, HubEvent, Log, Sink } from '../core/kinds.ts'
import type { MetricFamily } from '../core/metric-family.ts'
import { post } from './http-post.ts'
import { MlflowClient, type MlflowMetric, MOST_METRICS } from './mlflow.ts'
import { MlflowMetrics } from './mlflow-metrics.ts'
import { otlpRequest } from './otlp.ts'
import { GpuIo } from './otlp-gpu.ts'
import { Outbox } from './outbox.ts'
import { REMOTE_WRITE_HEADERS, RemoteWriteEncoder } from './remote-write.ts'
import type { PushSettings } from './settings.ts'

const GRACE_MS = 3000

export interface PushOptions {
  readonly state: AgentState
  readonly settings: PushSettings
  /** What a scrape would get. */
  readonly families: () => readonly MetricFamily[]
  readonly log: Log
  readonly version: string
  readonly now?: () => number
}

/** One sink for each receiver that is configured; none when there is none. */
export function createPush(options: PushOptions): readonly Required<Sink>[] {
  const { settings } = options
  return [
    ...(settings['push.remote_write.url'] === null ? [] : [remoteWriteSink(options, settings['push.remote_write.url'])]),
    ...(settings['push.otlp.url'] === null ? [] : [otlpSink(options, settings['push.otlp.url'])]),
    ...(settings['push.mlflow.url'] === null ? [] : [mlflowSink(options, settings['push.mlflow.url'])]),
  ]
}

interface Bounds {
  readonly log: Log
  readonly maxParcels: number
  readonly maxBytes: number
}

function bounds({ settings, log }: PushOptions, receiver: string): Bounds {
  return { log: log.child({ push: receiver }), maxParcels: settings['push.queue'], maxBytes: settings['push.queue_mb'] * 1024 ** 2 }
}

function userAgent({ version }: PushOptions): Record<string, string> {
  return { 'user-agent': `gpuwarden/${version}` }
}

interface Parts {
  readonly name: string
  readonly seconds: number
  readonly outbox: Pick<Outbox<never>, 'dropped' | 'close'>
  readonly log: Log
  /** Makes a push and puts it into the outbox. */
  push(): void
  accept?(event: HubEvent): void
  /** What is still to be said before the outbox is closed … */
  last?(): void
  /** … and after it. */
  after?(): Promise<void>
}

/** A sink with a clock of its own: what the hub publishes ten times a second is pushed four times a minute. */
function clocked({ name, seconds, outbox, log, push, accept, last, after }: Parts): Required<Sink> {
  let failures = 0
  const tick = () => {
    try {
      push()
    } catch (error) {
      failures++
      if (failures === 1) log.error({ err: error }, 'a push failed')
    }
  }
  const timer = setInterval(tick, seconds * 1000)
  timer.unref()
  return {
    name,
    accept: accept ?? (() => undefined),
    dropped() {
      const { count, reason } = outbox.dropped()
      return { count: count + failures, reason }
    },
    async close() {
      clearInterval(timer)
      last?.()
      await outbox.close(GRACE_MS)
      await after?.()
    },
  }
}

function remoteWriteSink(options: PushOptions, url: string): Required<Sink> {
  const { settings, state, families, now = Date.now } = options
  const instance = settings['push.instance'] ?? state.hostname
  const encoder = new RemoteWriteEncoder({ job: 'gpuwarden', instance, ...settings['push.labels'] })
  const headers = { ...userAgent(options), ...settings['push.remote_write.headers'], ...REMOTE_WRITE_HEADERS }
  const limits = bounds(options, 'remote_write')
  const outbox = new Outbox<Uint8Array>({ ...limits, send: (body, signal) => post({ url, headers, body }, signal) })
  const put = ({ body, samples }: { body: Uint8Array; samples: number }) => {
    if (samples > 0) outbox.put({ body, bytes: body.length, samples })
  }
  return clocked({
    name: 'remote_write',
    seconds: settings['push.interval'],
    outbox,
    log: limits.log,
    push: () => put(encoder.encode(families(), now())),
    last: () => put(encoder.farewell(now())),
  })
}

function otlpSink(options: PushOptions, url: string): Required<Sink> {
  const { settings, state, families, now = Date.now } = options
  const io = new GpuIo()
  const instance = settings['push.instance'] ?? state.hostname
  const headers = { ...userAgent(options), ...settings['push.otlp.headers'], 'content-type': 'application/json' }
  const limits = bounds(options, 'otlp')
  const outbox = new Outbox<string>({ ...limits, send: (body, signal) => post({ url, headers, body }, signal) })
  return clocked({
    name: 'otlp',
    seconds: settings['push.interval'],
    outbox,
    log: limits.log,
    accept: (event) => io.accept(event),
    push() {
      const { body, samples } = otlpRequest({ state, families: families(), io, instance, atMs: now() })
      outbox.put({ body, bytes: body.length, samples })
    },
  })
}

function mlflowSink(options: PushOptions, url: string): Required<Sink> {
  const { settings, state, now = Date.now } = options
  const client = new MlflowClient({
    url,
    runId: settings['push.mlflow.run_id'],
    experiment: settings['push.mlflow.experiment'],
    username: settings['push.mlflow.username'],
    password: settings['push.mlflow.password'],
    token: settings['push.mlflow.token'],
    runName: `gpuwarden ${state.hostname}`,
    now,
  })
  const metrics = new MlflowMetrics(state)
  const limits = bounds(options, 'mlflow')
  const outbox = new Outbox<readonly MlflowMetric[]>({ ...limits, send: (body, signal) => client.logBatch(body, signal) })
  const push = () => {
    const all = metrics.take(now())
    for (let at = 0; at < all.length; at += MOST_METRICS) {
      const body = all.slice(at, at + MOST_METRICS)
      outbox.put({ body, bytes: body.length * 100, samples: body.length })
    }
  }
  return clocked({
    name: 'mlflow',
    seconds: settings['push.mlflow.interval'],
    outbox,
    log: limits.log,
    accept: (event) => metrics.accept(event),
    push,
    last: push,
    async after() {
      try {
        await client.finish(AbortSignal.timeout(GRACE_MS))
      } catch (error) {
        limits.log.warn({ err: error }, 'the MLflow run could not be ended')
      }
    },
  })
}
