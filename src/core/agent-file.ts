/** Agents on this machine: each keeps a small file while it serves. A token is sent only where the process named in such a file listens. */
import { lstatSync, readFileSync, type Stats, statSync } from 'node:fs'
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { homeLane, STUCK_AT_END_MS } from './disk-lane.ts'
import type { Reading } from './model.ts'
import { isStillRunning, startTicksOf } from './process-identity.ts'
import { tryList, tryReadLink, tryReadText } from './system-file.ts'

export interface AgentPlace {
  readonly env?: NodeJS.ProcessEnv
  /** A folder in tests. */
  readonly proc?: string
}

interface AgentRecord {
  readonly pid: number
  readonly port: number
  readonly startedAt: number
  /** From /proc; a reused PID has another. null without /proc. */
  readonly startTicks: Reading
}

const FILE = /^agent-(\d+)\.json$/
const LARGEST_FILE_BYTES = 4096
const LISTENING = '0A'
const SYSTEM_FOLDER = '/run/gpuwarden'

/** Announces that this process serves there; returns how to undo it. Rejects when no folder can be written. */
export async function announceAgent(port: number, { env = process.env, proc = '/proc' }: AgentPlace = {}): Promise<() => Promise<void>> {
  const record: AgentRecord = { pid: process.pid, port, startedAt: Date.now(), startTicks: startTicksOf(process.pid, proc) }
  let fault: unknown = null
  for (const folder of foldersToWrite(env)) {
    try {
      return await homeLane.patiently(() => homeLane.run(folder, () => writeRecord(folder, record, proc)))
    } catch (error) {
      fault = error
    }
  }
  throw new Error(`cannot write the file that says where the agent is: ${fault instanceof Error ? fault.message : 'none is known'}`, {
    cause: fault,
  })
}

/** Whether the process that listens there is an agent of this user, of root, or of `owner` (such as the owner of the token file). */
export function isAgentOfOurs(port: number, owner: number | null = null, { env = process.env, proc = '/proc' }: AgentPlace = {}): boolean {
  const trusted = new Set([process.getuid?.() ?? 0, 0, ...(owner === null ? [] : [owner])])
  return foldersToRead(env).some((folder) => {
    const found = readRecord(join(folder, `agent-${port}.json`))
    if (!found || !trusted.has(found.uid) || found.record.port !== port) return false
    const { pid, startTicks } = found.record
    return isStillRunning(pid, startTicks, proc) && listens(pid, port, found.uid, proc)
  })
}

function foldersToWrite(env: NodeJS.ProcessEnv): string[] {
  const isRoot = process.getuid?.() === 0
  return [...runtimeFolder(env), ...(isRoot ? [SYSTEM_FOLDER] : []), stateFolder(env)]
}

function foldersToRead(env: NodeJS.ProcessEnv): string[] {
  return [...runtimeFolder(env), SYSTEM_FOLDER, stateFolder(env)]
}

/** Another user's (as after sudo) must not be used. */
function runtimeFolder({ XDG_RUNTIME_DIR: folder }: NodeJS.ProcessEnv): string[] {
  if (!folder?.startsWith('/')) return []
  const stat = statSync(folder, { throwIfNoEntry: false })
  return stat?.isDirectory() && stat.uid === process.getuid?.() ? [join(folder, 'gpuwarden')] : []
}

function stateFolder(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local/state'), 'gpuwarden')
}

async function writeRecord(folder: string, record: AgentRecord, proc: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const { uid } = await lstat(folder)
  if (uid !== (process.getuid?.() ?? uid)) throw new Error(`${folder} belongs to another user`)
  await removeStale(folder, proc)
  const path = join(folder, `agent-${record.port}.json`)
  const part = `${path}.${record.pid}`
  await rm(part, { force: true })
  await writeFile(part, `${JSON.stringify(record)}\n`, { flag: 'wx', mode: 0o644 })
  await rename(part, path)
  const takeBack = async () => {
    // Another agent may have taken the port since.
    if ((await readRecordLater(path))?.record.pid === record.pid) await rm(path, { force: true })
  }
  return () => homeLane.patiently(() => homeLane.run(path, takeBack), STUCK_AT_END_MS)
}

/** Left behind by agents that were killed. */
async function removeStale(folder: string, proc: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const found = FILE.test(name) ? await readRecordLater(join(folder, name)) : null
    if (!found) continue
    if (!isStillRunning(found.record.pid, found.record.startTicks, proc)) await rm(join(folder, name), { force: true })
  }
}

interface FoundRecord {
  readonly record: AgentRecord
  readonly uid: number
}

/** null: none that can be trusted. */
function readRecord(path: string): FoundRecord | null {
  try {
    const stat = lstatSync(path)
    return isTrustworthy(stat) ? recordIn(readFileSync(path, 'utf8'), stat.uid) : null
  } catch (error) {
    return provesNothing(error)
  }
}

/** The same without waiting for the disk. */
async function readRecordLater(path: string): Promise<FoundRecord | null> {
  try {
    const stat = await lstat(path)
    return isTrustworthy(stat) ? recordIn(await readFile(path, 'utf8'), stat.uid) : null
  } catch (error) {
    return provesNothing(error)
  }
}

function isTrustworthy(stat: Stats): boolean {
  const isWritableByOthers = (stat.mode & 0o022) !== 0
  return stat.isFile() && stat.size <= LARGEST_FILE_BYTES && !isWritableByOthers
}

function recordIn(text: string, uid: number): FoundRecord | null {
  const { pid, port, startedAt, startTicks } = JSON.parse(text) as Record<string, unknown>
  if (!isCount(pid) || !isCount(port) || typeof startedAt !== 'number') return null
  return { record: { pid, port, startedAt, startTicks: typeof startTicks === 'number' ? startTicks : null }, uid }
}

/** Missing, unreadable, or not written by an agent. */
function provesNothing(error: unknown): null {
  if (error instanceof SyntaxError || error instanceof TypeError || (error instanceof Error && 'code' in error)) return null
  throw error
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0
}

/** Where the kernel shows who listens there, it must be this process; else a running process is enough. */
function listens(pid: number, port: number, uid: number, proc: string): boolean {
  const listeners = [`${proc}/net/tcp`, `${proc}/net/tcp6`].flatMap((path) => listenersIn(tryReadText(path) ?? '', port))
  if (listeners.length === 0) return true
  const sockets = socketsOf(pid, proc)
  return listeners.every((listener) => (sockets ? sockets.has(listener.inode) : listener.uid === uid))
}

function listenersIn(table: string, port: number): { readonly uid: number; readonly inode: string }[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , uid, , inode = ''] = line.trim().split(/\s+/)
    return local.endsWith(end) && state === LISTENING ? [{ uid: Number(uid), inode }] : []
  })
}

/** null: not readable. */
function socketsOf(pid: number, proc: string): Set<string> | null {
  const folder = `${proc}/${pid}/fd`
  const names = tryList(folder)
  // A file may be closed while we look.
  return names && new Set(names.flatMap((name) => /^socket:\[(\d+)\]$/.exec(tryReadLink(join(folder, name)) ?? '')?.[1] ?? []))
}
