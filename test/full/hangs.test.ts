/** Programs that hang, unchanged under `gpuwarden run` with real PyTorch: the finding and `gpuwarden stacks` name who holds them up. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Finding } from '../../src/core/model.ts'
import { INSTALL_MS, pythonWithFrameworks } from './frameworks-environment.ts'

const run = promisify(execFile)
const PROGRAM = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))
const TRAINING = fileURLToPath(new URL('hangs.py', import.meta.url))
/** Importing PyTorch takes half a minute on a busy machine. */
const HANG_MS = 150_000

let python: string | null = null
let missing: string | null = null
const children: ChildProcess[] = []
const folders: string[] = []

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}

beforeAll(async () => {
  const found = await pythonWithFrameworks()
  if ('python' in found) python = found.python
  else missing = found.missing
}, INSTALL_MS + 300_000)

afterEach(async () => {
  for (const child of children.splice(0)) {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await ended
  }
  // A launcher starts its ranks in sessions of their own: they would hang for ever.
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    if (commandOf(pid).includes(TRAINING)) process.kill(Number(pid), 'SIGKILL')
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** The stall once it names a place, and what `gpuwarden stacks` prints then. */
async function hangOf(how: string, ranks: number): Promise<{ stall: Finding; stacks: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-hang-'))
  folders.push(folder)
  const [port, rendezvous] = [await freePort(), await freePort()]
  const launch = ranks === 1 ? [] : ['-m', 'torch.distributed.run', `--nproc-per-node=${ranks}`, `--master-port=${rendezvous}`]
  const args = ['run', '--log-dir', folder, '--port', String(port), '--quiet', '--', python ?? '', ...launch, TRAINING, how]
  const env = { ...process.env, GPUWARDEN_SPOOL: 'off', PYTHONDONTWRITEBYTECODE: '1', OMP_NUM_THREADS: '1' }
  children.push(spawn(process.execPath, [PROGRAM, ...args], { env, stdio: 'ignore', detached: true }))
  let stall: Finding | undefined
  const end = Date.now() + HANG_MS
  while (!stall && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 500))
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/findings`).catch(() => null)
    const { findings = [] } = answer ? ((await answer.json()) as { findings?: Finding[] }) : {}
    stall = findings.find(({ detector, evidence }) => detector === 'stall' && typeof evidence.place === 'string')
  }
  if (!stall) throw new Error(`no stall with a place after ${HANG_MS} ms`)
  const { stdout } = await run(process.execPath, [PROGRAM, 'stacks', stall.subject.run ?? '', '--port', String(port)])
  return { stall, stacks: stdout }
}

describe('a training that hangs', () => {
  it('in data names the rank, its loader, and who waits in which collective', { timeout: HANG_MS + 60_000 }, async ({ skip }) => {
    if (missing !== null) skip(missing)
    const { stall, stacks } = await hangOf('data', 2)
    const sentence = /rank 1 is in dataloader\.py:\d+ waiting for a worker \(from hangs\.py:\d+\); rank 0 waits for it in all_reduce #\d+/
    expect(stall).toMatchObject({ severity: 'warning', evidence: { culprit_ranks: '1', waiting_ranks: 1 } })
    expect(stall.message).toMatch(sentence)
    expect(stacks).toMatch(/stands still since \d\d:\d\d:\d\d/)
    expect(stacks).toMatch(sentence)
    expect(stacks).toMatch(/hangs\.py:\d+ in <module>/)
  })

  it('in a collective that a rank has not called names that rank', { timeout: HANG_MS + 60_000 }, async ({ skip }) => {
    if (missing !== null) skip(missing)
    const { stall } = await hangOf('collective', 2)
    expect(stall.message).toMatch(/: rank 1 is in hangs\.py:\d+ sleeping; rank 0 waits for it in barrier( #\d+)?\. No step for/)
  })

  it('alone names its line', { timeout: HANG_MS + 60_000 }, async ({ skip }) => {
    if (missing !== null) skip(missing)
    const { stall, stacks } = await hangOf('alone', 1)
    expect(stall.message).toMatch(/: main thread in hangs\.py:\d+, sleeping\. No step for/)
    expect(stacks).toMatch(/hangs\.py:\d+ in write_everything/)
  })
})
