import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AT_ONCE, IN_TURN } from './file-calls.ts'
import { FolderLock, type LockNote } from './folder-lock.ts'
import { ownIdentity } from './process-identity.ts'

function lockPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'a.lock')
}

const lockAt = (path: string) => new FolderLock(path, 0o600)
const DEAD_PID = spawnSync(process.execPath, ['-e', '']).pid

/** A lock as another process would have left it. */
function leave(path: string, change: LockNote = {}): void {
  writeFileSync(path, `${JSON.stringify({ ...ownIdentity(), ...change })}\n`)
}

const age = (path: string, seconds: number) => utimesSync(path, Date.now() / 1000 - seconds, Date.now() / 1000 - seconds)
const filesBeside = (path: string) => readdirSync(join(path, '..')).filter((name) => name !== 'a.lock')

describe.each([
  ['while the agent runs', (lock: FolderLock, note?: LockNote) => lock.acquire(note)],
  ['at the start', async (lock: FolderLock, note?: LockNote) => lock.acquireNow(note)],
])('the lock of a folder, %s', (_, acquire) => {
  it('is held by one at a time and free after release', async () => {
    const path = lockPath()
    const [first, second] = [lockAt(path), lockAt(path)]
    expect(await acquire(first, { run: 'first' })).toEqual({ held: true, left: null })
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ ...ownIdentity(), run: 'first' })
    expect(await acquire(second)).toMatchObject({ held: false, owner: expect.stringContaining(`process ${process.pid} on `) as string })
    await second.release()
    expect(await first.heartbeat()).toBe(true)
    await first.release()
    expect(await acquire(second)).toMatchObject({ held: true })
    expect(filesBeside(path)).toEqual([])
  })

  it('is taken over from a dead process, with what it had said', async () => {
    const path = lockPath()
    leave(path, { pid: DEAD_PID, files: ['gpu_metrics.jsonl'] })
    expect(await acquire(lockAt(path))).toMatchObject({ held: true, left: { files: ['gpu_metrics.jsonl'] } })
    expect(filesBeside(path)).toEqual([])
  })

  it('is taken over when the PID belongs to another process by now', async () => {
    const path = lockPath()
    leave(path, { pid: process.ppid, startTicks: 1 })
    expect(await acquire(lockAt(path))).toMatchObject({ held: true })
  })

  it('is taken over after a restart of the machine, whoever has the PID now', async () => {
    const path = lockPath()
    leave(path, { bootId: 'before' })
    expect(await acquire(lockAt(path))).toMatchObject({ held: false })
    age(path, 366 * 86_400)
    expect(await acquire(lockAt(path))).toMatchObject({ held: true })
  })

  it.each([
    ['another machine', { host: 'elsewhere', bootId: 'another' }],
    ['another container', { pidNamespace: 'pid:[1]' }],
  ])('of %s counts while it shows signs of life, though the PID is not alive here', async (_place, change) => {
    const path = lockPath()
    leave(path, { ...change, pid: DEAD_PID })
    expect(await acquire(lockAt(path))).toMatchObject({ held: false, owner: expect.stringContaining(String(DEAD_PID)) as string })
    age(path, 60)
    expect(await acquire(lockAt(path))).toMatchObject({ held: false })
    age(path, 300)
    expect(await acquire(lockAt(path))).toMatchObject({ held: true })
  })

  it('that nobody can read counts for as long, and the words say so', async () => {
    const path = lockPath()
    for (const content of ['', 'x', '{}\n', 'null\n', '{"pid":-1,"place":"host pid:[1]","started":"5"}\n']) {
      writeFileSync(path, content)
      expect(await acquire(lockAt(path))).toEqual({ held: false, owner: `a process without a name in ${path}` })
    }
    age(path, 300)
    expect(await acquire(lockAt(path))).toMatchObject({ held: true })
  })

  it.each([
    ['a folder', (path: string) => mkdirSync(path)],
    ['a pipe', (path: string) => void execFileSync('mkfifo', [path])],
    ['a link', (path: string) => symlinkSync('/dev/zero', path)],
  ])('is refused within a second where %s is in its place, with what to do', async (_what, make) => {
    const path = lockPath()
    make(path)
    const startedAt = performance.now()
    await expect((async () => acquire(lockAt(path)))()).rejects.toThrow(
      `${path} is not a lock of gpuwarden (a folder, a pipe, a link or a large file): remove it`,
    )
    expect(performance.now() - startedAt).toBeLessThan(1000)
    expect(filesBeside(path)).toEqual([])
  })

  it('leaves nothing behind on a full disk, however often it is tried', async (context) => {
    const path = lockPath()
    const dir = join(path, '..')
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir], { stdio: 'ignore' })
    } catch {
      context.skip('mounting a tmpfs is not permitted here')
    }
    onTestFinished(() => void execFileSync('umount', ['-l', dir]))
    expect(() => writeFileSync(join(dir, 'ballast'), Buffer.alloc(1024 * 1024))).toThrow(/ENOSPC/)
    for (let tries = 0; tries < 3; tries++) await expect((async () => acquire(lockAt(path)))()).rejects.toThrow(/ENOSPC/)
    expect(filesBeside(path)).toEqual(['ballast'])
    rmSync(join(dir, 'ballast'))
    expect(await acquire(lockAt(path))).toMatchObject({ held: true })
  })

  it('is taken over also where somebody was killed while doing so', async () => {
    const path = lockPath()
    leave(path, { pid: DEAD_PID })
    leave(`${path}.takeover`, { pid: DEAD_PID })
    expect(await acquire(lockAt(path))).toMatchObject({ held: true })
    expect(filesBeside(path)).toEqual([])
  })

  it('is left to who is taking it over', async () => {
    const path = lockPath()
    leave(path, { pid: DEAD_PID })
    leave(`${path}.takeover`)
    expect(await acquire(lockAt(path))).toEqual({ held: false, owner: 'another process that is just starting' })
  })
})

it('waits for a lock that is just being written', async () => {
  const path = lockPath()
  writeFileSync(path, '')
  setTimeout(() => leave(path, { pid: DEAD_PID, run: 'slow' }), 100)
  expect(await lockAt(path).acquire()).toMatchObject({ held: true, left: { run: 'slow' } })
})

it('does without hard links where the file system has none', async () => {
  const link = [AT_ONCE.link, IN_TURN.link] as const
  const refuse = () => {
    throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
  }
  onTestFinished(() => {
    ;[AT_ONCE.link, IN_TURN.link] = link
  })
  AT_ONCE.link = IN_TURN.link = refuse
  const path = lockPath()
  const [first, second] = [lockAt(path), lockAt(path)]
  expect([(await first.acquire()).held, second.acquireNow().held]).toEqual([true, false])
  await first.release()
  leave(path, { pid: DEAD_PID })
  expect([second.acquireNow().held, (await first.acquire()).held]).toEqual([true, false])
  expect(filesBeside(path)).toEqual([])
})

describe('the owner of a lock', () => {
  it('notices that it was taken away, and leaves it alone', async () => {
    const path = lockPath()
    const lock = lockAt(path)
    await lock.acquire()
    await lock.describe({ files: ['a.jsonl'] })
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ pid: process.pid, files: ['a.jsonl'] })
    writeFileSync(path, 'somebody else')
    expect(await lock.heartbeat()).toBe(false)
    expect(lock.held).toBe(false)
    await lock.release()
    expect(readFileSync(path, 'utf8')).toBe('somebody else')
  })

  it('reports a pipe in its place and does not wait for it', async () => {
    const path = lockPath()
    const lock = lockAt(path)
    await lock.acquire()
    rmSync(path)
    execFileSync('mkfifo', [path])
    await expect(lock.heartbeat()).rejects.toThrow('is not a lock of gpuwarden')
  })

  it('reads any text without throwing', () => {
    const path = lockPath()
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (content) => {
        writeFileSync(path, `${content}\n`)
        age(path, 300)
        expect(lockAt(path).acquireNow()).toMatchObject({ held: true })
      }),
      { numRuns: 50 },
    )
  })
})
