import { spawnSync } from 'node:child_process'
import { readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DirLock, LOCK_NAME, type LockHolder, parseHolder } from './dir-lock.ts'
import { temporaryDir } from './sink.contract.ts'

async function holderNow(dir: string): Promise<LockHolder> {
  const holder = parseHolder(await readFile(join(dir, LOCK_NAME), 'utf8'))
  if (!holder) throw new Error('no lock')
  return holder
}

/** A lock as another process would have left it. */
async function leave(dir: string, change: Partial<LockHolder>): Promise<void> {
  const lock = new DirLock(dir, 'other')
  await lock.acquire()
  await writeFile(join(dir, LOCK_NAME), JSON.stringify({ ...(await holderNow(dir)), ...change }))
}

describe('the lock of a folder', () => {
  it('is held by one at a time and free after release', async () => {
    const dir = await temporaryDir()
    const [first, second] = [new DirLock(dir, 'first'), new DirLock(dir, 'second')]
    expect(await first.acquire()).toEqual({ held: true, leftFiles: [] })
    expect(await second.acquire()).toMatchObject({ held: false, holder: { run: 'first', pid: process.pid } })
    await second.release()
    expect(await first.heartbeat()).toBe(true)
    await first.release()
    expect(await second.acquire()).toMatchObject({ held: true })
  })

  it('is taken over from a dead process, with the files that it was writing', async () => {
    const dir = await temporaryDir()
    const dead = spawnSync(process.execPath, ['-e', '']).pid
    await leave(dir, { pid: dead, files: ['gpu_metrics_20250730_120000.jsonl'] })
    expect(await new DirLock(dir, 'next').acquire()).toEqual({ held: true, leftFiles: ['gpu_metrics_20250730_120000.jsonl'] })
  })

  it('is taken over when the PID belongs to another process by now', async () => {
    const dir = await temporaryDir()
    await leave(dir, { started: '1' })
    expect(await new DirLock(dir, 'next').acquire()).toMatchObject({ held: true })
  })

  it('of another host counts while it is fresh', async () => {
    const dir = await temporaryDir()
    await leave(dir, { place: 'elsewhere', pid: 1 })
    const next = new DirLock(dir, 'next')
    expect(await next.acquire()).toMatchObject({ held: false, holder: { place: 'elsewhere' } })
    await utimes(join(dir, LOCK_NAME), new Date(0), new Date(0))
    expect(await next.acquire()).toMatchObject({ held: true })
  })

  it('notices that it was taken away', async () => {
    const dir = await temporaryDir()
    const lock = new DirLock(dir, 'first')
    await lock.acquire()
    await lock.describe(['a.jsonl'])
    expect((await holderNow(dir)).files).toEqual(['a.jsonl'])
    await writeFile(join(dir, LOCK_NAME), 'somebody else')
    expect(await lock.heartbeat()).toBe(false)
    expect(lock.held).toBe(false)
    await lock.release()
    expect(await readFile(join(dir, LOCK_NAME), 'utf8')).toBe('somebody else')
  })

  it('reads any text without throwing', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const holder = parseHolder(text)
        expect(holder === null || typeof holder.pid === 'number').toBe(true)
      }),
    )
    expect(parseHolder('null')).toBeNull()
  })
})
