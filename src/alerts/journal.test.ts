import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { logLane } from '../core/disk-lane.ts'
import { Journal } from './journal.ts'
import { decodeJournal, decodeLine, encodeJournal, encodeLine } from './journal-line.ts'
import { type RecordedLog, recordedLog, temporaryDir } from './pretend-world.contract.ts'

const FILE = 'alerts.journal'

async function openJournal(dir: string, log: RecordedLog = recordedLog()): Promise<Journal> {
  const journal = new Journal({ dir, log, now: () => 1_700_000_000_000, retryMs: 0 })
  onTestFinished(() => journal.close())
  await journal.commit()
  return journal
}

const entriesIn = (dir: string) => decodeJournal(readFileSync(join(dir, FILE), 'utf8')).entries

async function filled(dir: string, count: number): Promise<void> {
  const journal = await openJournal(dir)
  for (let i = 0; i < count; i++) {
    journal.set(`key/${i}`, { number: i })
    expect(await journal.commit()).toBe(true)
  }
  await journal.close()
}

/** `first` has the folder, `second` wants it. */
async function twoInOneFolder() {
  const dir = await temporaryDir()
  const first = await openJournal(dir)
  first.set('a', 1)
  await first.commit()
  const second = await openJournal(dir)
  second.set('b', 2)
  return { dir, first, second }
}

describe('the journal', () => {
  it('keeps what was set, changed and deleted, in order', async () => {
    const dir = await temporaryDir()
    const journal = await openJournal(dir)
    for (const key of ['x/1', 'x/2', 'y/1', 'x/3']) journal.set(key, key)
    await journal.commit()
    journal.delete('x/2')
    journal.set('x/1', { changed: true })
    expect(await journal.commit()).toBe(true)
    await journal.close()
    const again = await openJournal(dir)
    expect(again.entries('x/')).toEqual([
      ['x/1', { changed: true }],
      ['x/3', 'x/3'],
    ])
    expect(again.get('y/1')).toBe('y/1')
    expect((await stat(join(dir, FILE))).mode & 0o777).toBe(0o600)
  })

  it.each(['the file', 'the folder'])('is made again from memory when %s is removed while it is in use, and says so', async (what) => {
    const dir = join(await temporaryDir(), 'alerts')
    const log = recordedLog()
    const journal = new Journal({ dir, log, now: () => 1_700_000_000_000, retryMs: 0, lookEveryMs: 0 })
    onTestFinished(() => journal.close())
    journal.set('alert/1', 'fires')
    expect(await journal.commit()).toBe(true)
    await rm(what === 'the file' ? join(dir, FILE) : dir, { recursive: true })
    // Nothing changed, and yet a commit is due.
    expect(journal.isDue).toBe(true)
    expect(await journal.commit()).toBe(true)
    expect(entriesIn(dir).get('alert/1')).toBe('fires')
    expect(log.lines.map(({ message }) => message)).toEqual([
      'the alert journal was removed or replaced while it was in use: it is made again from memory',
    ])
    journal.set('alert/2', 'fires')
    expect(await journal.commit()).toBe(true)
    expect(entriesIn(dir).get('alert/2')).toBe('fires')
    expect(await readdir(dir)).toEqual([FILE, 'alerts.lock'])
  })

  it('is made again when another file is put in its place', async () => {
    const dir = await temporaryDir()
    const journal = new Journal({ dir, log: recordedLog(), now: () => 1_700_000_000_000, lookEveryMs: 0 })
    onTestFinished(() => journal.close())
    journal.set('a', 1)
    await journal.commit()
    await rm(join(dir, FILE))
    await writeFile(join(dir, FILE), 'something else')
    journal.set('b', 2)
    expect(await journal.commit()).toBe(true)
    expect([...entriesIn(dir)]).toEqual(
      expect.arrayContaining([
        ['a', 1],
        ['b', 2],
      ]),
    )
  })

  it('writes many changes at once when they come while it writes', async () => {
    const dir = await temporaryDir()
    const journal = await openJournal(dir)
    await journal.commit()
    const commits: Promise<boolean>[] = []
    for (let i = 0; i < 100; i++) {
      journal.set(`k${i}`, i)
      commits.push(journal.commit())
    }
    expect(await Promise.all(commits)).toEqual(commits.map(() => true))
    const text = await readFile(join(dir, FILE), 'utf8')
    expect(text.split('\n').length).toBeLessThan(8)
    expect(decodeJournal(text).entries.size).toBe(100)
  })

  it('is written anew when most of it is history', async () => {
    const dir = await temporaryDir()
    const journal = await openJournal(dir)
    for (let i = 0; i < 100; i++) {
      journal.set('same', 'x'.repeat(10_000))
      await journal.commit()
    }
    expect((await stat(join(dir, FILE))).size).toBeLessThan(300_000)
    await journal.close()
    expect((await openJournal(dir)).get('same')).toBe('x'.repeat(10_000))
  })

  it('has in its file what was written, before anybody waits for it', async () => {
    const dir = await temporaryDir()
    const journal = await openJournal(dir)
    journal.set('a', 1)
    journal.set('b', 2)
    journal.write()
    await expect.poll(() => entriesIn(dir).has('b')).toBe(true)
    const lines = readFileSync(join(dir, FILE), 'utf8').split('\n')
    expect(decodeLine(lines.at(-2) ?? '')).toEqual([
      ['a', 1],
      ['b', 2],
    ])
    expect([journal.isDirty, journal.isPending]).toEqual([false, true])
    expect(await journal.commit()).toBe(true)
    expect(journal.isPending).toBe(false)
  })

  it('has what is written while it is written anew', async () => {
    const dir = await temporaryDir()
    const journal = await openJournal(dir)
    journal.set('old', 'x'.repeat(300_000))
    journal.write()
    let isDone = false
    const rewritten = journal.commit().then(() => {
      isDone = true
    })
    let count = 0
    for (; !isDone; count++) {
      journal.set('last', count)
      journal.set(`k${count}`, count)
      journal.write()
      // A moment later, and with everything before it.
      while (entriesIn(dir).get('last') !== count) await new Promise((resolve) => setImmediate(resolve))
    }
    await rewritten
    expect(count).toBeGreaterThan(1)
    journal.delete('old')
    await journal.close()
    const again = await openJournal(dir)
    expect(again.entries('k').map(([, value]) => value)).toEqual(Array.from({ length: count }, (_, index) => index))
    expect(again.get('old')).toBeUndefined()
  })

  it('fails, and does not wait, while the disk does not answer; then all that was decided meanwhile is written', async () => {
    const dir = await temporaryDir()
    const log = recordedLog()
    const journal = await openJournal(dir, log)
    let answer: () => void = () => undefined
    const dead = logLane.run('/net/x', () => new Promise<void>((resolve) => (answer = resolve)))
    journal.set('a', 1)
    expect(await journal.commit(20)).toBe(false)
    await expect.poll(() => journal.fault, { timeout: 20_000 }).toMatch(/not responded .*\/net\/x/)
    const count = log.lines.length
    for (let i = 0; i < 1000; i++) {
      journal.set('b', i)
      journal.write()
    }
    expect(await journal.commit()).toBe(false)
    expect([count, log.lines.length]).toEqual([1, 1])
    answer()
    await dead
    await expect.poll(() => journal.commit(), { timeout: 20_000 }).toBe(true)
    expect(journal.fault).toBe(null)
    expect([entriesIn(dir).get('a'), entriesIn(dir).get('b')]).toEqual([1, 999])
    expect(log.lines.at(-1)?.message).toBe('alerts are kept on disk again')
  })

  it('loses only the torn last line of a write that was killed, silently', async () => {
    const dir = await temporaryDir()
    await filled(dir, 3)
    const text = await readFile(join(dir, FILE), 'utf8')
    await writeFile(join(dir, FILE), text.slice(0, -5))
    const log = recordedLog()
    expect((await openJournal(dir, log)).entries('key/').map(([key]) => key)).toEqual(['key/0', 'key/1'])
    expect(log.lines).toEqual([])
  })

  it('sets a damaged file aside, reports it, and keeps the rest', async () => {
    const dir = await temporaryDir()
    await filled(dir, 5)
    const file = await open(join(dir, FILE), 'r+')
    const text = (await file.readFile('utf8')).toString()
    await file.write('#', text.indexOf('"key/2"'))
    await file.close()
    const log = recordedLog()
    const journal = await openJournal(dir, log)
    expect(journal.entries('key/').map(([key]) => key)).toEqual(['key/0', 'key/1', 'key/3', 'key/4'])
    expect(journal.corrupt).toEqual(['alerts-1700000000000.corrupt'])
    expect(log.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('1 of its lines cannot be read') }])
    await journal.commit()
    await journal.close()
    expect(await readFile(join(dir, 'alerts-1700000000000.corrupt'), 'utf8')).toContain('#key/2"')
    const after = recordedLog()
    expect((await openJournal(dir, after)).entries('key/').length).toBe(4)
    expect(after.lines).toEqual([])
  })

  it.each([
    ['noise', Buffer.from([0, 1, 2, 250, 10, 13, 10])],
    ['text', Buffer.from('hello\nworld\n')],
    ['a later format', Buffer.from(encodeLine([['format', 99]]))],
  ])('starts anew beside a file that is %s', async (_name, bytes) => {
    const dir = await temporaryDir()
    await writeFile(join(dir, FILE), bytes)
    const log = recordedLog()
    const journal = await openJournal(dir, log)
    expect(journal.entries('')).toEqual([])
    expect(log.lines.length).toBe(1)
    journal.set('a', 1)
    expect(await journal.commit()).toBe(true)
    expect((await readdir(dir)).filter((name) => name.endsWith('.corrupt')).length).toBe(1)
  })

  it('starts anew where something that is not a file is in its place', async () => {
    const dir = await temporaryDir()
    await mkdir(join(dir, FILE))
    const journal = await openJournal(dir)
    journal.set('a', 1)
    expect(await journal.commit()).toBe(true)
  })

  it('does not share its folder with another agent, and says who has it', async () => {
    const { dir, first, second } = await twoInOneFolder()
    expect(await second.commit()).toBe(false)
    expect(second.fault).toContain(`process ${process.pid}`)
    await second.close()
    await first.close()
    expect((await openJournal(dir)).entries('')).toEqual([['a', 1]])
  })

  it('keeps its alerts in a folder as soon as the other agent has left it, and what that one wrote beside them', async () => {
    const { dir, first, second } = await twoInOneFolder()
    expect([second.fault !== null, second.isDue]).toEqual([true, true])
    await first.close()
    expect(await second.commit()).toBe(true)
    expect([second.fault, second.corrupt.length]).toEqual([null, 1])
    expect([...entriesIn(dir)]).toEqual([['b', 2]])
    await second.close()
    expect((await openJournal(dir)).entries('')).toEqual([['b', 2]])
  })

  it('shows that it lives also while nothing happens, and notices when its folder was taken for abandoned', async () => {
    const dir = await temporaryDir()
    const journal = new Journal({ dir, log: recordedLog(), now: Date.now, retryMs: 0, heartbeatMs: 0 })
    onTestFinished(() => journal.close())
    expect(await journal.commit()).toBe(true)
    const lock = join(dir, 'alerts.lock')
    const { utimes, rm } = await import('node:fs/promises')
    await utimes(lock, new Date(0), new Date(0))
    expect(journal.isDue).toBe(true)
    expect(await journal.commit()).toBe(true)
    expect(Date.now() - (await stat(lock)).mtimeMs).toBeLessThan(60_000)
    await rm(lock)
    journal.set('a', 1)
    expect(await journal.commit()).toBe(true)
    expect(await readFile(lock, 'utf8')).toContain(`"pid":${process.pid}`)
    await writeFile(lock, (await readFile(lock, 'utf8')).replace('"host":', '"by":"another","host":'))
    journal.set('b', 2)
    expect(await journal.commit()).toBe(false)
    expect(journal.fault).toContain('keeps its alerts in')
    await rm(lock)
    expect(await journal.commit()).toBe(true)
    expect(journal.fault).toBe(null)
  })

  it('says what is in the place of its lock, and does not wait for it', async () => {
    const dir = await temporaryDir()
    execFileSync('mkfifo', [join(dir, 'alerts.lock')])
    const startedAt = performance.now()
    const journal = await openJournal(dir)
    expect(performance.now() - startedAt).toBeLessThan(1000)
    expect(journal.fault).toContain('alerts.lock is not a lock of gpuwarden')
  })

  it('takes over the lock of an agent that was killed', async () => {
    const dir = await temporaryDir()
    await writeFile(join(dir, 'alerts.lock'), JSON.stringify({ pid: 2 ** 22 + 1, place: 'elsewhere', started: null }))
    expect((await openJournal(dir)).fault).not.toBe(null)
    const { utimes } = await import('node:fs/promises')
    await utimes(join(dir, 'alerts.lock'), new Date(0), new Date(0))
    expect((await openJournal(dir)).fault).toBe(null)
  })
})

describe('a line of the journal', () => {
  it('comes back as it was, or not at all', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.jsonValue())), fc.nat(), fc.nat(255), (changes, position, byte) => {
        const line = encodeLine(changes)
        expect(decodeLine(line.slice(0, -1))).toEqual(JSON.parse(JSON.stringify(changes)))
        const damaged = Buffer.from(line.slice(0, -1))
        const index = position % damaged.length
        if (damaged[index] === byte) return
        damaged[index] = byte
        expect(decodeLine(damaged.toString())).toBe(null)
      }),
    )
  })

  it('never throws on what is not ours', () => {
    fc.assert(fc.property(fc.string(), (text) => void decodeJournal(text)))
  })

  it('gives, cut off anywhere, what was complete until there', () => {
    const key = fc.constantFrom('a', 'b', 'c')
    const batch = fc.array(fc.oneof(fc.tuple(key, fc.nat()), fc.tuple(key)), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(fc.array(batch), fc.double({ min: 0, max: 1, noNaN: true }), (batches, share) => {
        const head = encodeJournal('id', [])
        const lines = batches.map(encodeLine)
        const cut = Math.floor(lines.join('').length * share)
        let complete = 0
        for (let length = 0; complete < lines.length && length + (lines[complete]?.length ?? 0) <= cut; complete++)
          length += lines[complete]?.length ?? 0
        const wanted = decodeJournal(head + lines.slice(0, complete).join(''))
        expect(decodeJournal(head + lines.join('').slice(0, cut))).toEqual(wanted)
        expect(wanted).toMatchObject({ id: 'id', damage: null })
        const unwritten = () => lines.slice(Math.max(0, complete - 1)).join('')
        expect(decodeJournal(head + lines.join('').slice(0, cut), unwritten)).toEqual(decodeJournal(head + lines.join('')))
      }),
    )
  })
})
