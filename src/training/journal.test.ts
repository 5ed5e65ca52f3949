import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { entriesIn, Journal, type JournalEntry } from './journal.ts'

const PATIENT = { timeout: 20_000 }
const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-journal-'))
const entry = (text: string): JournalEntry => ({ run: 'r', receivedAt: 1, body: Buffer.from(text) })

/** Only what the system itself decides is pretended here: when the disk has it, and that it fails. */
async function disk() {
  const file = await open(folder(), 'r')
  const handles = Object.getPrototypeOf(file) as FileHandle
  await file.close()
  return vi.spyOn(handles, 'datasync')
}

function held(dir: string): string[] {
  const journals = readdirSync(dir).sort()
  return journals.flatMap((name) => entriesIn(readFileSync(join(dir, name))).map(({ body }) => body.toString()))
}

/** The disk is done with a write only when the test takes its turn. */
async function journalOnHeldDisk() {
  const datasync = await disk()
  const turns: (() => void)[] = []
  datasync.mockImplementation(() => new Promise<void>((resolve) => turns.push(resolve)))
  const dir = folder()
  const applied: string[] = []
  const journal = new Journal(dir, async ({ body }) => void applied.push(body.toString()))
  return { datasync, turns, dir, applied, journal }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('the journal', () => {
  it('acknowledges what the disk has, not before; what arrives meanwhile shares its next turn', async () => {
    const { datasync, turns, dir, applied, journal } = await journalOnHeldDisk()
    const first = journal.append(entry('a'))
    await expect.poll(() => turns.length, PATIENT).toBe(1)
    expect(held(dir)).toEqual(['a'])
    expect(applied).toEqual([])
    const others = ['b', 'c', 'd'].map((text) => journal.append(entry(text)))
    turns[0]?.()
    await first
    expect(applied).toEqual(['a'])
    await expect.poll(() => turns.length, PATIENT).toBe(2)
    turns[1]?.()
    await Promise.all(others)
    expect(datasync).toHaveBeenCalledTimes(2)
    expect(applied).toEqual(['a', 'b', 'c', 'd'])
    await journal.close()
  })

  it('forgets what nobody waits for anymore, unless it is being written', async () => {
    const { turns, applied, journal } = await journalOnHeldDisk()
    const [a, b, c] = ['a', 'b', 'c'].map(entry)
    const first = journal.append(a as JournalEntry)
    await expect.poll(() => turns.length, PATIENT).toBe(1)
    void journal.append(b as JournalEntry)
    const last = journal.append(c as JournalEntry)
    for (const one of [a, b]) journal.withdraw(one as JournalEntry)
    turns[0]?.()
    await first
    await expect.poll(() => turns.length, PATIENT).toBe(2)
    turns[1]?.()
    await last
    expect(applied).toEqual(['a', 'c'])
    await journal.close()
  })

  it('does not go on with a file that the disk failed to take, and keeps what it had taken before', async () => {
    const datasync = await disk()
    const dir = folder()
    const applied: string[] = []
    const journal = new Journal(dir, async ({ body }) => void applied.push(body.toString()))
    await journal.append(entry('a'))
    datasync.mockRejectedValueOnce(new Error('EIO: i/o error, fdatasync'))
    await expect(journal.append(entry('b'))).rejects.toThrow('EIO')
    expect(held(dir)).toEqual(['a'])
    await journal.append(entry('b'))
    expect(applied).toEqual(['a', 'b'])
    expect(readdirSync(dir).length).toBe(2)
    expect(held(dir)).toEqual(['a', 'b'])
    const paths = await journal.rotate(() => undefined)
    expect(paths.length).toBe(2)
    await journal.discard(paths)
    // A file that never took anything is not left behind.
    datasync.mockRejectedValueOnce(new Error('EIO: i/o error, fdatasync'))
    await expect(journal.append(entry('c'))).rejects.toThrow('EIO')
    expect(readdirSync(dir)).toEqual([])
    await journal.close()
  })
})
