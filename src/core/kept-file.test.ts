import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { KeptFile } from './kept-file.ts'

const OPTIONS = { mode: 0o640, folderMode: 0o750, flush: false }
const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-kept-'))

it('is written as a whole, with its folder, and what is asked for meanwhile is one more write', async () => {
  const path = join(folder(), 'a', 'state.json')
  const file = new KeptFile(path, OPTIONS)
  let made = 0
  const saves = Array.from({ length: 20 }, (_, index) =>
    file.save(() => {
      made++
      return `text ${index}`
    }),
  )
  await Promise.all(saves)
  expect(made).toBe(2)
  expect(readFileSync(path, 'utf8')).toBe('text 19')
  expect(statSync(path).mode & 0o777).toBe(0o640)
  expect(readdirSync(join(path, '..'))).toEqual(['state.json'])
})

it('says when it cannot be written, and is tried anew', async () => {
  const base = folder()
  writeFileSync(join(base, 'in-the-way'), '')
  const file = new KeptFile(join(base, 'in-the-way', 'x.json'), OPTIONS)
  const both = [file.save(() => 'a'), file.save(() => 'b')]
  for (const result of await Promise.allSettled(both)) expect(result.status).toBe('rejected')
})
