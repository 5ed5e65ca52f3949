import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { logLane } from '../core/disk-lane.ts'
import { explainFault } from './disk-state.ts'
import {
  eventually,
  filesOf,
  finding,
  gpuInfo,
  gpuSample,
  NOON,
  type RecordedLog,
  recordedLog,
  records,
  SETTINGS,
  temporaryDir,
  tickEvent,
  wholeAndTorn,
} from './sink.contract.ts'
import { createStore, type Store, type StoreOptions } from './store.ts'

const SECOND = 1000

function open(dir: string, log: RecordedLog, settings: Partial<StoreOptions['settings']> = {}, rest: Partial<StoreOptions> = {}): Store {
  const timing = { retryFirstMs: 20, retryMaxMs: 100, closeMs: 300 }
  const store = createStore({ dir, settings: { ...SETTINGS, ...settings }, log, now: () => NOON, runId: 'run', timing, ...rest })
  onTestFinished(() => store.close())
  return store
}

function feed(store: Store, from: number, count: number): void {
  for (let second = from; second < from + count; second++) {
    store.accept(tickEvent(NOON + second * SECOND, [gpuSample(NOON + second * SECOND, { powerWatts: second })]))
  }
}

describe('the reason of a fault', () => {
  it.each([
    ['ENOSPC', /no space left/],
    ['EROFS', /read-only file system .*make it writable/],
    ['EACCES', /cannot be written by this user .*owner/],
    ['ENOTDIR', /is not a folder/],
  ])('%s says what to do', (code, words) => {
    expect(explainFault(Object.assign(new Error('fault'), { code }), '/logs')).toMatch(words)
  })
})

const levels = (log: RecordedLog) => log.messages.map(({ level }) => level)

function mountTmpfs(dir: string, sizeKib: number): boolean {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeKib}k`, 'tmpfs', dir]).status === 0
  if (mounted) onTestFinished(() => void spawnSync('umount', ['-l', dir]))
  return mounted
}

describe('a disk that is full', () => {
  it('keeps the monitor going, says so once, goes on when there is room, and reports what is missing', async (context) => {
    const dir = await temporaryDir()
    if (!mountTmpfs(dir, 128)) context.skip('mounting a tmpfs is not permitted here')
    const log = recordedLog()
    const store = open(dir, log, { 'log.buffer_mb': 0.06 })
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    feed(store, 0, 20)
    await store.flush()
    expect(store.health().state).toBe('ok')
    const ballast = join(dir, 'ballast')
    fill(ballast)
    let fed = 20
    while (store.dropped().count < 50) {
      feed(store, fed, 10)
      fed += 10
      await store.flush()
    }
    expect(store.health()).toMatchObject({ state: 'degraded', gaps: 1, reason: expect.stringContaining('ENOSPC') as string })
    expect(levels(log)).toEqual(['error'])
    await rm(ballast)
    await eventually(() => store.health().state === 'ok')
    feed(store, fed, 5)
    fed += 5
    await store.flush()
    expect(levels(log)).toEqual(['error', 'info'])
    const { whole, torn } = await wholeAndTorn(dir, 'gpu_metrics')
    expect(torn).toBeLessThanOrEqual(1)
    expect(whole.length + store.dropped().count).toBe(fed)
    const gap = (await records(dir, 'gpu_events')).find((record) => record.event === 'log_gap')
    expect(gap).toMatchObject({ dropped: store.dropped().count, reason: expect.stringContaining('no space left') as string })
    const present = new Set(whole.map((record) => record.timestamp))
    for (let second = 0; second < fed; second++) {
      const time = new Date(NOON + second * SECOND).toISOString()
      if (!present.has(time)) expect(time >= String(gap?.from) && time <= String(gap?.to), time).toBe(true)
    }
  })

  it('ends a line that was torn before it goes on in the same file', async (context) => {
    const dir = await temporaryDir()
    if (!mountTmpfs(dir, 64)) context.skip('mounting a tmpfs is not permitted here')
    const store = open(dir, recordedLog(), { 'log.buffer_mb': 1 })
    feed(store, 0, 1)
    await store.flush()
    const ballast = join(dir, 'ballast')
    fill(ballast)
    feed(store, 1, 40)
    await store.flush()
    expect(store.health().state).toBe('degraded')
    const [name = ''] = await filesOf(dir, 'gpu_metrics')
    expect((await readFile(join(dir, name), 'utf8')).endsWith('\n')).toBe(false)
    await rm(ballast)
    await eventually(() => store.health().state === 'ok')
    const { whole, torn } = await wholeAndTorn(dir, 'gpu_metrics')
    expect(await filesOf(dir, 'gpu_metrics')).toEqual([name])
    expect(torn).toBe(1)
    expect(whole.map((record) => record.power_draw_watts)).toEqual(Array.from({ length: 41 }, (_, second) => second))
  })
})

/** Takes all the room there is, to the last page. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (;;) writeFileSync(file, Buffer.alloc(4096))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(file)
  }
}

describe('a folder that is in problem', () => {
  it('waits while something else is in its place, then writes everything', async () => {
    const dir = join(await temporaryDir(), 'logs')
    await writeFile(dir, 'a file')
    const log = recordedLog()
    const store = open(dir, log)
    for (let round = 0; round < 4; round++) {
      feed(store, round * 5, 5)
      await store.flush()
    }
    expect(store.health()).toMatchObject({
      state: 'degraded',
      pendingLines: 20,
      reason: expect.stringContaining('is not a folder') as string,
    })
    expect(levels(log)).toEqual(['error'])
    await rm(dir)
    await eventually(() => store.health().state === 'ok')
    expect(await records(dir, 'gpu_metrics')).toHaveLength(20)
    expect(store.dropped().count).toBe(0)
  })

  it('makes the folder and the files again when they were deleted, and says what went with them', async () => {
    const dir = join(await temporaryDir(), 'logs')
    const log = recordedLog()
    const store = open(dir, log)
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    feed(store, 0, 5)
    await store.flush()
    await rm(dir, { recursive: true })
    feed(store, 5, 3)
    await store.flush()
    expect((await records(dir, 'gpu_metrics')).map((record) => record.power_draw_watts)).toEqual([5, 6, 7])
    expect(await records(dir, 'gpu_devices')).toHaveLength(1)
    expect(await records(dir, 'gpu_events')).toMatchObject([
      { event: 'log_gap', dropped: expect.any(Number) as number, reason: expect.stringContaining('was removed') as string },
    ])
    expect(store.health()).toMatchObject({ state: 'ok', gaps: 1, dropped: 0 })
    expect(await readFile(join(dir, 'gpuwarden.lock'), 'utf8')).toContain(`"pid":${process.pid}`)
  })

  it('notices a folder that was moved away under it', async () => {
    const dir = join(await temporaryDir(), 'logs')
    const store = open(dir, recordedLog())
    feed(store, 0, 1)
    await store.flush()
    await rename(dir, `${dir}.old`)
    feed(store, 1, 1)
    await store.flush()
    expect((await records(dir, 'gpu_metrics')).map((record) => record.power_draw_watts)).toEqual([1])
  })

  it('reports a link into nowhere instead of throwing', async () => {
    const dir = join(await temporaryDir(), 'logs')
    await symlink('/proc/nowhere', dir)
    const store = open(dir, recordedLog())
    feed(store, 0, 1)
    await store.flush()
    expect(store.health()).toMatchObject({ state: 'degraded', pendingLines: 1 })
  })
})

describe('a lock that is none', () => {
  it.each([
    ['a pipe', (path: string) => void execFileSync('mkfifo', [path])],
    ['a folder', (path: string) => mkdir(path)],
  ])('is said within a second where it is %s, and all is written when it is gone', async (_, make) => {
    const dir = await temporaryDir()
    const path = join(dir, 'gpuwarden.lock')
    await make(path)
    const store = open(dir, recordedLog())
    feed(store, 0, 3)
    const startedAt = performance.now()
    await store.flush()
    expect(performance.now() - startedAt).toBeLessThan(1000)
    expect(store.health()).toMatchObject({
      state: 'degraded',
      pendingLines: 3,
      reason: expect.stringContaining('not a lock of gpuwarden') as string,
    })
    await rm(path, { recursive: true })
    await store.flush()
    expect(store.health()).toMatchObject({ state: 'ok', pendingLines: 0, soleWriter: true })
  })
})

describe('a disk that hangs', () => {
  it('never holds up accept or close, drops the oldest samples, and recovers', async () => {
    const dir = await temporaryDir()
    const release = hang(dir)
    const log = recordedLog()
    const store = open(dir, log, { 'log.buffer_mb': 0.03 })
    store.accept({ type: 'finding', finding: finding(NOON) })
    feed(store, 0, 100)
    void store.flush()
    await eventually(() => store.health().state === 'degraded')
    feed(store, 100, 100)
    expect(store.health()).toMatchObject({ reason: expect.stringMatching(/does not answer, since 2\d{3}-/) as string })
    // Whoever waits for the log is told that it cannot be written, and does not wait with it.
    await store.flush()
    expect(levels(log)).toEqual(['error'])
    expect(store.dropped().count).toBeGreaterThan(50)
    expect(store.health().pendingBytes).toBeLessThanOrEqual(0.03 * 2 ** 20)
    await release()
    await eventually(() => store.health().state === 'ok')
    await store.flush()
    expect(store.health()).toMatchObject({ state: 'ok', pendingLines: 0, gaps: 1 })
    expect(await records(dir, 'findings')).toHaveLength(1)
    expect((await records(dir, 'gpu_metrics')).at(-1)).toMatchObject({ power_draw_watts: 199 })
  })

  it('closes within its time and says how much was lost', async () => {
    const dir = await temporaryDir()
    const release = hang(dir)
    const log = recordedLog()
    const store = open(dir, log)
    feed(store, 0, 10)
    await store.close()
    expect(log.messages.at(-1)).toMatchObject({ level: 'error', message: expect.stringContaining('10 lines not written') as string })
    await release()
    await eventually(async () => store.health().pendingLines === 0 && !(await readdir(dir)).includes('gpuwarden.lock'))
  })
})

/** A call that does not return, as on a dead network disk. Returns what ends it. */
function hang(dir: string): () => Promise<void> {
  let end: () => void = () => undefined
  const call = logLane.run(dir, () => new Promise<void>((resolve) => (end = resolve)))
  return () => {
    end()
    return call
  }
}
