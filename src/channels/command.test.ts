import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { HOSTILE, hostile, message } from './alert-message.fixture.ts'
import { type Behavior, channelContract } from './channel.contract.ts'
import { command } from './command.ts'
import { oneLine } from './plain-text.ts'

const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-command-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const SECRET = 'T0pSecret-a1b2c3d4e5'
const stop = new AbortController().signal
const env = { env: { PATH: process.env.PATH, SMTP_PASSWORD: 'x', GPUWARDEN_SERVER_TOKEN: 'x' }, stateDir: dir }

const SCRIPTS: Readonly<Record<Behavior, string>> = {
  ok: 'echo thanks',
  refuse: 'exit 64',
  later: 'exit 75',
  hang: 'sleep 600 & sleep 600',
  drop: 'kill -9 $$',
  down: 'exit 1',
  echo: 'echo "$@"; exit 65',
}

let count = 0
function script(body: string): string {
  const path = join(dir, `hook-${count++}.sh`)
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
  return path
}

channelContract('command', async (behavior) => {
  const input = join(dir, `input-${count}`)
  writeFileSync(input, '')
  const path = script(`cat > ${input}\n${SCRIPTS[behavior]}`)
  return {
    channel: command.open('c', { command: [path, '--token', SECRET] }, { ...env, timeoutMs: behavior === 'hang' ? 400 : 20_000 }),
    secrets: [SECRET],
    says: 'thanks',
    received: () => readFileSync(input, 'utf8'),
    close: async () => undefined,
  }
})

describe('command', () => {
  it('gets JSON on its input, its arguments as they are, and little of the environment', async () => {
    const out = join(dir, 'out')
    const path = script(`cat > ${out}.json\nenv | cut -d= -f1 | sort > ${out}.env\nprintf '%s' "$1" > ${out}.arg`)
    const delivery = await command.open('c', { command: [path, '$(touch /tmp/never) ; `x` * {{host}}'] }, env).deliver(hostile, stop)
    expect(delivery).toMatchObject({ ok: true })
    expect(JSON.parse(readFileSync(`${out}.json`, 'utf8')).alerts[0].message).toBe(oneLine(HOSTILE))
    expect(readFileSync(`${out}.arg`, 'utf8')).toBe('$(touch /tmp/never) ; `x` * {{host}}')
    expect(readFileSync(`${out}.env`, 'utf8').trim().split('\n')).toEqual(
      expect.not.arrayContaining(['SMTP_PASSWORD', 'GPUWARDEN_SERVER_TOKEN']),
    )
  })

  it('ends what the program started, too, when time is up', async () => {
    const pidFile = join(dir, 'grandchild')
    const path = script(`sleep 600 & echo $! > ${pidFile}\nwait`)
    const delivery = await command.open('c', { command: [path] }, { ...env, timeoutMs: 1500 }).deliver(message, stop)
    expect(delivery).toMatchObject({ ok: false, retry: true, reason: expect.stringContaining('it did not finish within 1.5 s') })
    const pid = readFileSync(pidFile, 'utf8').trim()
    await expect.poll(() => isRunning(pid), { timeout: 10_000 }).toBe(false)
  })

  it('does not mind a program that never reads its input or says far too much', async () => {
    const quiet = await command.open('c', { command: [script('exit 0')] }, env).deliver(message, stop)
    expect(quiet).toMatchObject({ ok: true })
    const loud = await command.open('c', { command: [script('head -c 3000000 /dev/zero | tr "\\0" x')] }, env).deliver(message, stop)
    expect(loud).toMatchObject({ ok: true })
    expect(loud.ok && loud.answer.length).toBeLessThan(700)
  })

  it('says so when there is no such program', async () => {
    const delivery = await command.open('c', { command: ['/nonexistent/hook'] }, env).deliver(message, stop)
    expect(delivery).toMatchObject({ ok: false, retry: false, reason: expect.stringContaining('ENOENT') })
    expect(() => command.open('c', { command: 'rm -rf /' }, env)).toThrow(/command/)
  })
})

function isRunning(pid: string): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
