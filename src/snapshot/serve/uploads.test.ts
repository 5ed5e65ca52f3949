import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { Uploads } from './uploads.ts'

const place = () => mkdtempSync(join(tmpdir(), 'gpuwarden-test-'))
const nobody = () => undefined

describe('an upload', () => {
  it('comes in pieces, and one that was cut off can be sent again', async () => {
    const uploads = new Uploads({ mostBytes: 100, folder: place() })
    const upload = await uploads.begin('a', 6, nobody)
    if (!upload) throw new Error('no room')
    const piece = (text: string) => Readable.from([Buffer.from(text)])
    const cut = Readable.from(
      (async function* () {
        yield Buffer.from('xy')
        throw new Error('the line is gone')
      })(),
    )
    expect(await uploads.take(upload, 0, piece('abc'), 50)).toBe('taken')
    expect(await uploads.take(upload, 3, cut, 50)).toBe('cut_off')
    expect([upload.received, statSync(upload.path).size]).toEqual([3, 3])
    expect(await uploads.take(upload, 0, piece('abc'), 50)).toBe('wrong_offset')
    expect(await uploads.take(upload, 3, piece('defg'), 50)).toBe('too_large')
    const slow = uploads.take(upload, 3, piece('d'), 50)
    expect(await uploads.take(upload, 3, piece('def'), 50)).toBe('busy')
    expect(await slow).toBe('taken')
    expect(await uploads.take(upload, 4, piece('ef'), 1)).toBe('too_large')
    expect(await uploads.take(upload, 4, piece('ef'), 50)).toBe('taken')
    expect(readFileSync(upload.path, 'utf8')).toBe('abcdef')
    await uploads.close()
    expect(existsSync(upload.path)).toBe(false)
  })

  it('that stays unfinished is given up when room is needed', async () => {
    let now = 0
    const uploads = new Uploads({ mostBytes: 100, folder: place(), now: () => now })
    const first = await uploads.begin('a', 80, nobody)
    expect(await uploads.begin('b', 80, nobody)).toBe(null)
    now = 11 * 60_000
    const gone: string[] = []
    expect(await uploads.begin('b', 80, (id) => gone.push(id))).not.toBe(null)
    expect(gone).toEqual([first?.id])
    await uploads.close()
  })
})

describe('what a killed agent left', () => {
  it('is removed, and nothing else', async () => {
    const folder = place()
    const make = (name: string, ageMs: number) => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'u1'), 'x')
      utimesSync(join(folder, name), new Date(Date.now() - ageMs), new Date(Date.now() - ageMs))
    }
    const [old, hour] = [2 * 3600_000, 10_000]
    make('gpuwarden-uploads-4194399-abc', old)
    make('gpuwarden-uploads-4194398-abc', hour)
    make(`gpuwarden-uploads-${process.pid}-abc`, old)
    make('somebody-else-4194399', old)
    symlinkSync(join(folder, 'somebody-else-4194399'), join(folder, 'gpuwarden-uploads-4194397-link'))
    await new Uploads({ mostBytes: 1, folder }).removeLeftovers()
    const left = (name: string) => existsSync(join(folder, name))
    expect(left('gpuwarden-uploads-4194399-abc')).toBe(false)
    expect(left('gpuwarden-uploads-4194398-abc')).toBe(true)
    expect(left(`gpuwarden-uploads-${process.pid}-abc`)).toBe(true)
    expect(left('somebody-else-4194399/u1')).toBe(true)
  })
})
