import { existsSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeFolder, makeFolderSync } from './make-folder.ts'

const temporary = () => mkdtempSync(join(tmpdir(), 'gpuwarden-folder-'))
const WAYS: readonly [string, (path: string, mode?: number) => Promise<string | undefined>][] = [
  ['makeFolder', makeFolder],
  ['makeFolderSync', async (path, mode) => makeFolderSync(path, mode)],
]

describe.each(WAYS)('%s', (_name, make) => {
  it('makes a folder with its parents, and says which was the first', async () => {
    const base = temporary()
    expect(await make(join(base, 'a', 'b', 'c'), 0o750)).toBe(join(base, 'a'))
    expect(statSync(join(base, 'a', 'b', 'c')).mode & 0o777).toBe(0o750)
    expect(await make(join(base, 'a', 'b', 'c'))).toBeUndefined()
  })

  it('says why it cannot: a file in its place, a link to nowhere, a name that is too long', async () => {
    const base = temporary()
    writeFileSync(join(base, 'file'), '')
    symlinkSync(join(base, 'gone'), join(base, 'link'))
    await expect(make(join(base, 'file'))).rejects.toThrow(/EEXIST/)
    await expect(make(join(base, 'file', 'x', 'y'))).rejects.toThrow(/ENOTDIR/)
    await expect(make(join(base, 'link', 'x'))).rejects.toThrow(/EEXIST|ENOENT/)
    await expect(make(join(base, 'n'.repeat(300)))).rejects.toThrow(/ENAMETOOLONG/)
  })

  it.skipIf(!existsSync('/proc/self'))('gives up where nothing can be made, instead of trying for ever', async () => {
    await expect(make('/proc/gpuwarden-cannot-be-made/logs')).rejects.toThrow(/ENOENT|EACCES|EPERM/)
  })

  it('lets two make the same at once', async () => {
    const path = join(temporary(), 'a', 'b')
    await Promise.all([make(path), make(path), make(path)])
    expect(statSync(path).isDirectory()).toBe(true)
  })
})
