/** XIDs from the kernel's log (NVML misses 79, 119, 120 on some drivers) and host OOM kills; only what comes after the start. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import type { SourceEnv } from '../../core/source-contract.ts'
import { normalizeBusId } from './layouts.ts'
import type { Nvml } from './library.ts'

export interface KernelXid {
  /** `00000000:3B:00.0` */
  readonly pciBusId: string | null
  readonly code: number
  /** What the kernel's line says after the number. */
  readonly detail: string
}

/** A process that the kernel ended to free memory of the host, or of its cgroup. */
export interface KernelKill {
  readonly pid: number
  readonly name: string
  readonly isCgroup: boolean
}

const MARK = 'NVRM: Xid'
const KILL_MARK = ': Killed process '
const KILL_LINE = /(Memory cgroup out|Out) of memory: Killed process (\d+) \(([^)]*)\)/
const LINE = /NVRM: Xid \(PCI:([0-9a-fA-F:.]+)[^)]*\): (\d+)(?:,\s*(.*))?/
const RECORD_BYTES = 8192
const MAX_RECORDS_PER_READ = 256
const MAX_RECORDS_AT_OPEN = 200_000
const MAX_DETAIL = 200

/** null: a line about something else. */
export function parseXidLine(line: string): KernelXid | null {
  if (!line.includes(MARK)) return null
  const match = LINE.exec(line)
  if (!match) return null
  const [, address = '', code = '', detail = ''] = match
  return { pciBusId: normalizeBusId(address), code: Number(code), detail: detail.trim().slice(0, MAX_DETAIL) }
}

/** null: a line about something else. */
export function parseKillLine(line: string): KernelKill | null {
  const match = line.includes(KILL_MARK) ? KILL_LINE.exec(line) : null
  if (!match) return null
  const [, scope = '', pid = '', name = ''] = match
  return { pid: Number(pid), name, isCgroup: scope.startsWith('Memory cgroup') }
}

export class KernelLog {
  readonly #file: number
  readonly #read: Nvml['readFile']
  /** null: a device that gives one record per read; else where to go on in a regular file. */
  #position: number | null
  readonly #bytes = Buffer.alloc(RECORD_BYTES)
  #rest = ''
  #open = true

  constructor(file: number, read: Nvml['readFile']) {
    this.#file = file
    this.#read = read
    const stat = fstatSync(file)
    this.#position = stat.isFile() ? stat.size : null
    if (this.#position === null) for (let i = 0; i < MAX_RECORDS_AT_OPEN && this.#readRecord() !== null; i++);
  }

  /** What came since the last call; bounded, the rest comes with the next one. */
  read(): (KernelXid | KernelKill)[] {
    const found: (KernelXid | KernelKill)[] = []
    for (let i = 0; this.#open && i < MAX_RECORDS_PER_READ; i++) {
      const text = this.#position === null ? this.#readRecord() : this.#readFile(this.#position)
      if (text === null) break
      if (!text.includes(MARK) && !text.includes(KILL_MARK)) continue
      for (const line of text.split('\n')) {
        const known = parseXidLine(line) ?? parseKillLine(line)
        if (known !== null) found.push(known)
      }
    }
    return found
  }

  close(): void {
    if (this.#open) closeSync(this.#file)
    this.#open = false
  }

  /** One record; '' for one that was overwritten before it was read; null when there is none. */
  #readRecord(): string | null {
    const length = this.#read(this.#file, this.#bytes)
    if (length >= 0) return length === 0 ? null : this.#bytes.toString('latin1', 0, length)
    const code = getSystemErrorName(length)
    if (code === 'EPIPE' || code === 'EINVAL') return ''
    if (code === 'EAGAIN') return null
    throw Object.assign(new Error(`${code}: read`), { code })
  }

  /** Whole lines of what was appended. */
  #readFile(position: number): string | null {
    const length = readSync(this.#file, this.#bytes, 0, RECORD_BYTES, position)
    if (length === 0) return null
    this.#position = position + length
    const text = this.#rest + this.#bytes.toString('latin1', 0, length)
    const end = text.lastIndexOf('\n') + 1
    this.#rest = text.slice(end).slice(-RECORD_BYTES)
    return text.slice(0, end)
  }
}

/** null, said once in the log, where the kernel's log is not ours to read. */
export function openKernelLog(env: SourceEnv, read: Nvml['readFile']): KernelLog | null {
  const path = join(env.root, 'dev/kmsg')
  try {
    return new KernelLog(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), read)
  } catch (fault) {
    const { code, message } = fault as NodeJS.ErrnoException
    if (code === undefined) throw fault
    env.log('info', `the kernel log ${path} cannot be read, so XIDs come from the driver alone`, { reason: message })
    return null
  }
}
