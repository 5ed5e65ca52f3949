import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openLog } from './log.ts'

const OPTIONS = { level: 'debug', stderr: false, maxBytes: 1e6, runId: 'run' } as const
const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-log-'))

it('escapes every control character, those of the C1 block too, and the line reads back the same', async () => {
  const dir = folder()
  const { log, file, close } = openLog({ ...OPTIONS, dir })
  const controls = String.fromCharCode(
    ...Array.from({ length: 32 }, (_, code) => code),
    ...Array.from({ length: 33 }, (_, code) => 0x7f + code),
  )
  log.debug({ name: `a${controls}b` }, `message ${controls} é`)
  await close()
  const text = readFileSync(file ?? '', 'utf8')
  expect([...text.trimEnd()].filter((char) => /[\p{Cc}]/u.test(char))).toEqual([])
  expect(JSON.parse(text)).toMatchObject({ name: `a${controls}b`, msg: `message ${controls} é` })
})

it('does not wait for a pipe in place of its file', async () => {
  const dir = folder()
  execFileSync('mkfifo', [join(dir, 'gpu_monitor.log')])
  const { file, close } = openLog({ ...OPTIONS, level: 'silent', dir })
  expect(file).toBe(null)
  await close()
})
