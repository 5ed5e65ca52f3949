import { hostname } from 'node:os'
import { afterEach, describe, expect, it } from 'vitest'
import type { RankStacks } from '../core/hang/rank-stacks.ts'
import type { Finding, Run } from '../core/model.ts'
import { procStacks, ranksBelow } from './process-threads.ts'
import { runOf } from './routes.ts'
import { TRAINING_DEFAULTS } from './settings.ts'
import { createTraining, type Training } from './training.ts'

const ignore = () => undefined
const SILENT = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore, fatal: ignore, child: () => SILENT } as never
const rooms: Training[] = []
afterEach(async () => {
  for (const room of rooms.splice(0)) await room.close()
})

/** Two ranks that made twenty steps of 50 ms, the last of them `silentMs` ago. */
async function world(silentMs: number) {
  const runs: Run[] = []
  const training = createTraining({
    hub: { receiveRun: (run) => void runs.push(run), receiveSteps: ignore },
    dir: null,
    log: SILENT,
    settings: { ...TRAINING_DEFAULTS, 'training.nccl_ras_port': 0 },
    gpuOf: (pid) => (pid === 11 ? '1' : null),
  })
  rooms.push(training)
  await training.postRun(runOf({ id: 'r', name: 'demo', host: 'elsewhere', world_size: 2 }))
  const end = Date.now() - silentMs
  const lines = [0, 1].flatMap((rank) =>
    Array.from({ length: 20 }, (_, step) => ({ seq: step + 1, rank, step, t: end - (20 - step) * 50, step_seconds: 0.05, pid: 10 + rank })),
  )
  await training.postSteps('r', Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n')))
  return { training, runs, sign: (rank: number) => training.postSteps('r', Buffer.alloc(0), rank) }
}

const stall = (since: number): Finding =>
  ({ detector: 'stall', state: 'active', provenance: 'live', subject: { run: 'r' }, since, at: since }) as unknown as Finding

function stacks(rank: number, file: string, open: boolean): RankStacks {
  const main = { name: 'MainThread', isMain: true, state: 'S', syscall: null, wchan: null, frames: [{ file, line: 7, function: 'f' }] }
  const pending = { seq: 5, op: 'all_reduce', isP2p: false, state: 'started', sizes: '', dtypes: '', seconds: 1 }
  const group = {
    group: '0',
    description: null,
    ranks: null,
    last: open ? 5 : 4,
    completed: 4,
    op: 'all_reduce',
    pending: open ? pending : null,
  }
  return {
    rank,
    pid: 10 + rank,
    at: Date.now(),
    from: 'sdk',
    moves: false,
    phase: null,
    threads: [main],
    collectives: [group],
    reason: null,
  }
}

describe('a run that stands still', () => {
  it('is asked in the answers to its signs of life, and the verdict is kept with it', async () => {
    const { training, runs, sign } = await world(3000)
    const order = (await sign(0))?.stacks
    expect(order?.id).toMatch(/^[0-9a-f]{16}$/)
    expect((await sign(1))?.stacks).toEqual(order)
    const id = order?.id ?? ''
    expect(training.standstills.take('r', id, stacks(0, '/app/train.py', true))).toBe(true)
    expect((await sign(0))?.stacks).toBeUndefined()
    expect(training.standstills.take('r', id, stacks(1, '/app/data.py', false))).toBe(true)
    // Nothing is said before a stall was found.
    expect((await training.find('r'))?.run.hang).toBeNull()
    training.noteFinding(stall(Date.now() - 3000))
    await expect.poll(() => runs.at(-1)?.hang?.sentence).toBe('rank 1 (gpu 1) is in data.py:7; rank 0 waits for it in all_reduce #5')
    const kept = (await training.find('r'))?.run
    expect(kept?.stacks.map(({ rank }) => rank)).toEqual([0, 1])
    const count = runs.length
    training.noteFinding(stall(Date.now() - 3000))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(runs.length).toBe(count)
  })

  it('is not asked while it makes steps, and takes no stacks that nobody asked for', async () => {
    const { training, sign } = await world(0)
    expect((await sign(0))?.stacks).toBeUndefined()
    expect(training.standstills.take('r', 'abc', stacks(0, '/app/train.py', true))).toBe(false)
    expect(training.standstills.ask('nobody')).toBeNull()
    expect(training.standstills.ask('r')).not.toBeNull()
    expect((await sign(0))?.stacks).toBeDefined()
    await training.endRun('r', { outcome: 'success', message: null, endedAt: Date.now(), rank: null })
    expect(training.standstills.ask('r')).toBeNull()
  })

  it('is heard of by its signs of life, which write nothing', async () => {
    const { training, sign } = await world(3000)
    const [before] = training.runs()
    const bytes = training.health().journalBytes
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await sign(0)).toMatchObject({ run: 'r', accepted: 0, duplicates: 0, rejected_count: 0 })
    expect(training.runs()[0]?.heardAt).toBeGreaterThan(before?.heardAt ?? 0)
    expect(training.health().journalBytes).toBe(bytes)
  })

  it('is judged without a rank that does not answer', { timeout: 15_000 }, async () => {
    const { training, runs, sign } = await world(3000)
    const id = (await sign(0))?.stacks?.id ?? ''
    training.noteFinding(stall(Date.now() - 3000))
    training.standstills.take('r', id, stacks(0, '/app/train.py', true))
    await expect
      .poll(() => runs.at(-1)?.hang?.sentence, { timeout: 10_000 })
      .toBe('rank 1 (gpu 1) does not answer; rank 0 waits for it in all_reduce #5')
  })
})

describe('a program without an SDK', () => {
  it.skipIf(process.platform !== 'linux')('shows what the kernel knows of it', async () => {
    const own = procStacks(process.pid, 0, 1)
    expect(own).toMatchObject({ rank: 0, from: 'proc', pid: process.pid })
    expect(own?.threads.filter(({ isMain }) => isMain)).toHaveLength(1)
    expect(procStacks(2 ** 22 + 5, 0, 1)).toBeNull()
    expect(ranksBelow(process.pid).map(({ pid }) => pid)).toContain(process.pid)
    const { training } = await world(0)
    await training.postRun(runOf({ id: 'bare', name: 'bare', host: hostname(), pid: process.pid }))
    training.standstills.ask('bare')
    const found = await training.find('bare')
    if (!found) throw new Error('no run')
    const state = await training.standstills.stateOf(found.run)
    expect(state.ranks.map(({ pid, from }) => [pid, from])).toEqual([[process.pid, 'proc']])
  })
})
