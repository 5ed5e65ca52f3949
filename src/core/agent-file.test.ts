import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { announceAgent, isAgentOfOurs } from './agent-file.ts'

const servers: Server[] = []

async function listen(): Promise<number> {
  const server = createServer()
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

/** Both folders that are tried, so that the machine's own are left alone. */
function place() {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-agent-file-'))
  return { folder: join(folder, 'gpuwarden'), env: { XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: join(folder, 'state') } }
}

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

describe('the file of an agent', () => {
  it('proves an agent that listens, until it is taken back', async () => {
    const { folder, env } = place()
    const port = await listen()
    expect(isAgentOfOurs(port, null, { env })).toBe(false)
    const remove = await announceAgent(port, { env })
    expect(isAgentOfOurs(port, null, { env })).toBe(true)
    expect(isAgentOfOurs(port + 1, null, { env })).toBe(false)
    await remove()
    expect(readdirSync(folder)).toEqual([])
    expect(isAgentOfOurs(port, null, { env })).toBe(false)
  })

  it('proves nothing when another process listens there', async () => {
    const { folder, env } = place()
    const port = await listen()
    await announceAgent(port, { env })
    const path = join(folder, `agent-${port}.json`)
    const record = JSON.parse(readFileSync(path, 'utf8'))
    // The parent lives and is ours, but does not listen.
    writeFileSync(path, JSON.stringify({ ...record, pid: process.ppid, startTicks: null }))
    expect(isAgentOfOurs(port, null, { env })).toBe(false)
  })

  it.each([
    ['a process that is gone', { pid: 2 ** 22 - 1 }],
    ['a PID that was given to another process', { startTicks: 1 }],
    ['another port', { port: 1 }],
    ['no process', { pid: null }],
  ])('proves nothing when it names %s', async (_, change) => {
    const { folder, env } = place()
    const port = await listen()
    await announceAgent(port, { env })
    const path = join(folder, `agent-${port}.json`)
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...change }))
    expect(isAgentOfOurs(port, null, { env })).toBe(false)
  })

  it('proves nothing when others may write it, when it is a link, or when it is something else', async () => {
    const { folder, env } = place()
    const port = await listen()
    await announceAgent(port, { env })
    const path = join(folder, `agent-${port}.json`)
    chmodSync(path, 0o666)
    expect(isAgentOfOurs(port, null, { env })).toBe(false)
    chmodSync(path, 0o644)
    expect(isAgentOfOurs(port, null, { env })).toBe(true)
    const other = await listen()
    symlinkSync(path, join(folder, `agent-${other}.json`))
    expect(isAgentOfOurs(other, null, { env })).toBe(false)
    for (const text of ['', 'null', '[]', '{']) {
      writeFileSync(path, text)
      expect(isAgentOfOurs(port, null, { env })).toBe(false)
    }
  })

  it('trusts the living process where the kernel does not report who listens', async () => {
    const { env } = place()
    const port = await listen()
    await announceAgent(port, { env, proc: '/nonexistent' })
    expect(isAgentOfOurs(port, null, { env, proc: '/nonexistent' })).toBe(true)
  })

  it('goes by the owner of the socket where the process may not be looked into', async () => {
    const { env } = place()
    const port = await listen()
    await announceAgent(port, { env, proc: '/nonexistent' })
    const proc = mkdtempSync(join(tmpdir(), 'gpuwarden-proc-'))
    mkdirSync(join(proc, 'net'))
    const table = (uid: number) =>
      writeFileSync(
        join(proc, 'net/tcp'),
        `  sl  local_address rem_address\n   0: 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 ${uid} 0 12345 1\n`,
      )
    table(process.getuid?.() ?? 0)
    expect(isAgentOfOurs(port, null, { env, proc })).toBe(true)
    table(4242)
    expect(isAgentOfOurs(port, null, { env, proc })).toBe(false)
  })

  it('is cleaned away when its agent was killed', async () => {
    const { folder, env } = place()
    const port = await listen()
    await announceAgent(port, { env })
    const stale = join(folder, 'agent-1.json')
    writeFileSync(stale, JSON.stringify({ pid: 2 ** 22 - 1, port: 1, startedAt: 0, startTicks: 1 }))
    await announceAgent(port, { env })
    expect(readdirSync(folder)).toEqual([`agent-${port}.json`])
  })

  it('leaves the file of the next agent on the same port alone', async () => {
    const { folder, env } = place()
    const port = await listen()
    const remove = await announceAgent(port, { env })
    const path = join(folder, `agent-${port}.json`)
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), pid: process.ppid }))
    await remove()
    expect(readdirSync(folder)).toHaveLength(1)
  })
})
