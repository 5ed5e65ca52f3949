/** The training room behind a real server, with a real store, over real sockets. */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Log } from '../src/core/kinds.ts'
import type { Run, TrainingStep } from '../src/core/model.ts'
import { createServer, type GpuwardenServer } from '../src/server/server.ts'
import { serverSettings } from '../src/server/settings.ts'
import { storeSettings } from '../src/store/settings.ts'
import { createStore, type Store } from '../src/store/store.ts'
import { createTraining, type Training, type TrainingOptions } from '../src/training/training.ts'

const ignore = () => undefined
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => SILENT }

function defaultsOf<S extends Record<string, { default: unknown }>>(settings: S): { [K in keyof S]: S[K]['default'] } {
  return Object.fromEntries(Object.entries(settings).map(([key, { default: value }]) => [key, value])) as never
}

export interface World {
  readonly url: string
  readonly dir: string
  readonly training: Training
  readonly runs: Run[]
  readonly steps: TrainingStep[]
  readonly store: Store
  /** As kill -9 would: nothing is flushed, nothing is said. */
  crash(): Promise<void>
  close(): Promise<void>
}

const open: World[] = []

export async function start(
  dir = mkdtempSync(join(tmpdir(), 'gpuwarden-training-')),
  extra: Partial<TrainingOptions> = {},
): Promise<World> {
  const settings = { ...defaultsOf(storeSettings), 'log.compress': false } as never
  const store = createStore({ dir, settings, log: SILENT, now: Date.now, runId: 'test' })
  const runs: Run[] = []
  const steps: TrainingStep[] = []
  let isDead = false
  const training = createTraining({
    hub: {
      receiveRun: (run) => void runs.push(run),
      receiveSteps: (more) => {
        if (isDead) return
        steps.push(...more)
        store.accept({ type: 'steps', steps: more, provenance: 'live' })
      },
    },
    dir,
    log: SILENT,
    flush: async () => {
      if (isDead) return false
      await store.flush()
      return store.health().state === 'ok'
    },
    ...extra,
  })
  const server: GpuwardenServer = createServer({
    state: { hostname: 'test' } as never,
    history: {} as never,
    metrics: {} as never,
    settings: { ...defaultsOf(serverSettings), 'server.port': 0 } as never,
    log: SILENT,
    version: '0',
    routes: training.routes,
  })
  const { url } = await server.listen()
  const world: World = {
    url,
    dir,
    training,
    runs,
    steps,
    store,
    async crash() {
      isDead = true
      open.splice(open.indexOf(world), 1)
      await server.close()
    },
    async close() {
      open.splice(open.indexOf(world), 1)
      await server.close()
      await training.close()
      await store.close()
    },
  }
  open.push(world)
  return world
}

export async function closeAll(): Promise<void> {
  for (const world of [...open]) await world.close()
}

export async function post(url: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

export async function postLines(
  url: string,
  lines: string | Buffer,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const body = typeof lines === 'string' ? lines : new Uint8Array(lines)
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/x-ndjson', ...headers }, body })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

export const T = 1_760_000_000_000
export const line = (seq: number, extra: object = {}) =>
  JSON.stringify({ seq, rank: 0, step: seq, t: T + seq * 100, loss: 1 / seq, ...extra })
export const lines = (from: number, to: number, extra: object = {}) =>
  Array.from({ length: to - from + 1 }, (_, index) => line(from + index, extra)).join('\n')

export function logged(dir: string): Record<string, unknown>[] {
  return readdirSync(dir)
    .filter((name) => name.startsWith('training_metrics_'))
    .flatMap((name) => {
      const bytes = readFileSync(join(dir, name))
      return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n')
    })
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text) as Record<string, unknown>)
}
