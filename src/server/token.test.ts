import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collectingLog, settingsWith } from './pretend-agent.contract.ts'
import { loadToken } from './token.ts'

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gpuwarden-token-'))
})
afterAll(() => rm(dir, { recursive: true }))

const load = (settings: Parameters<typeof settingsWith>[0]) => loadToken(settingsWith(settings), collectingLog())

describe('loadToken', () => {
  it('needs none on loopback, and one everywhere else', async () => {
    expect(await load({})).toBeNull()
    expect(await load({ 'server.host': '::1' })).toBeNull()
    for (const host of ['0.0.0.0', '::', '192.168.1.5', 'node7']) {
      await expect(load({ 'server.host': host }), host).rejects.toThrow(/no token is set: give --token-file <file>/)
    }
    expect(await load({ 'server.host': '0.0.0.0', 'server.token': 'abcdefgh' })).toBe('abcdefgh')
  })

  it('makes a file that only its owner can read, once', async () => {
    const file = join(dir, 'deep', 'token')
    const log = collectingLog()
    const token = await loadToken(settingsWith({ 'server.token_file': file }), log)
    expect(Buffer.from(token ?? '', 'base64url')).toHaveLength(32)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect((await readFile(file, 'utf8')).trim()).toBe(token)
    expect(await load({ 'server.token_file': file })).toBe(token)
    expect(JSON.stringify(log.lines)).not.toContain(token)
  })

  it('refuses a file that others can read or change, and says how to mend it', async () => {
    const file = join(dir, 'open')
    await writeFile(file, 'sesame-open-up\n')
    for (const mode of [0o644, 0o604, 0o640, 0o602]) {
      await chmod(file, mode)
      const failure = await load({ 'server.token_file': file }).catch((error: Error) => error.message)
      expect(failure).toContain(`chmod 600 ${file}`)
      expect(failure).not.toContain('sesame')
    }
    await chmod(file, 0o400)
    expect(await load({ 'server.token_file': file })).toBe('sesame-open-up')
  })

  it('refuses what is no token, without showing it', async () => {
    const file = join(dir, 'odd')
    for (const content of ['', 'short', 'two words here', 'line\nbreaks-inside', 'ümlaut-ümlaut', 'x'.repeat(5000)]) {
      await writeFile(file, content, { mode: 0o600 })
      await expect(load({ 'server.token_file': file })).rejects.toThrow(/server\.token_file/)
    }
    await expect(load({ 'server.token_file': dir })).rejects.toThrow(/regular file|cannot be read/)
    await expect(load({ 'server.token': 'abcdefgh', 'server.token_file': file })).rejects.toThrow(/both set/)
    await expect(load({ 'server.token_file': join(file, 'token') })).rejects.toThrow(/cannot be created/)
  })
})
