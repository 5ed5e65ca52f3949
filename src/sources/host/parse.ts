import type { Reading } from '../../core/model.ts'

export interface CpuTimes {
  /** Ticks of all processors since the start, and those of them without work. */
  readonly total: number
  readonly idle: number
}

/** The first line of /proc/stat: `cpu  user nice system idle iowait irq softirq steal …`; guest time is already in user's. */
export function parseCpuTimes(stat: string): CpuTimes | null {
  if (!stat.startsWith('cpu ')) return null
  const end = stat.indexOf('\n')
  const fields = (end < 0 ? stat : stat.slice(0, end)).slice(4).trim().split(' ')
  if (fields.length < 4) return null
  let total = 0
  for (let field = 0; field < 8; field++) total += Number(fields[field] ?? 0)
  const idle = Number(fields[3]) + Number(fields[4] ?? 0)
  return Number.isFinite(total) && Number.isFinite(idle) ? { total, idle } : null
}

/** How many `cpuN` lines there are: processors that are switched on. */
export function countCpus(stat: string): Reading {
  let count = 0
  // They come first: what follows is very long on large machines.
  for (let at = stat.indexOf('\n'); at >= 0 && stat.startsWith('cpu', at + 1); at = stat.indexOf('\n', at + 4)) count++
  return count === 0 ? null : count
}

/** Busy share between two readings; null when no time passed. */
export function cpuRatioBetween(before: CpuTimes, now: CpuTimes): Reading {
  const total = now.total - before.total
  if (total <= 0) return null
  return Math.min(1, Math.max(0, 1 - (now.idle - before.idle) / total))
}

export function parseLoad(loadavg: string): readonly [Reading, Reading, Reading] {
  const match = /^(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) /.exec(loadavg)
  return match === null ? [null, null, null] : [Number(match[1]), Number(match[2]), Number(match[3])]
}

export interface HostMemory {
  readonly memoryTotalBytes: Reading
  readonly memoryUsedBytes: Reading
  readonly memoryAvailableBytes: Reading
  readonly swapTotalBytes: Reading
  readonly swapUsedBytes: Reading
}

/** The figure of a line such as `MemTotal:       16384 kB`, in bytes. */
function kibibytes(meminfo: string, name: string): Reading {
  const before = meminfo.startsWith(`${name}:`) ? -1 : meminfo.indexOf(`\n${name}:`)
  if (before < 0 && !meminfo.startsWith(`${name}:`)) return null
  const at = before + name.length + 2
  const end = meminfo.indexOf(' kB', at)
  if (end < 0 || end - at > 32) return null
  const digits = meminfo.slice(at, end).trim()
  return /^\d{1,15}$/.test(digits) ? Number(digits) * 1024 : null
}

export function parseMemory(meminfo: string): HostMemory {
  const difference = (a: Reading, b: Reading) => (a === null || b === null ? null : Math.max(0, a - b))
  const memoryTotalBytes = kibibytes(meminfo, 'MemTotal')
  const memoryAvailableBytes = kibibytes(meminfo, 'MemAvailable')
  const swapTotalBytes = kibibytes(meminfo, 'SwapTotal')
  return {
    memoryTotalBytes,
    memoryUsedBytes: difference(memoryTotalBytes, memoryAvailableBytes),
    memoryAvailableBytes,
    swapTotalBytes,
    swapUsedBytes: difference(swapTotalBytes, kibibytes(meminfo, 'SwapFree')),
  }
}

/** The real user of /proc/PID/status. */
export function parseUid(status: string): Reading {
  const match = /^Uid:\s+(\d{1,10})\s/m.exec(status)
  return match === null ? null : Number(match[1])
}

const MAX_ARGUMENTS = 64

/** /proc/PID/cmdline: arguments end in NUL. Empty for the kernel's own threads and for zombies. */
export function parseCommand(cmdline: string): readonly string[] {
  const text = cmdline.replace(/\0+$/, '')
  return text === '' ? [] : text.split('\0', MAX_ARGUMENTS)
}

/** Names by user number; where a number stands twice the first line counts, as for the system. */
export function parsePasswd(passwd: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>()
  for (const line of passwd.split('\n')) {
    const [name, , uid] = line.split(':', 3)
    if (!name || uid === undefined || !/^\d{1,10}$/.test(uid) || name.startsWith('#')) continue
    if (!names.has(Number(uid))) names.set(Number(uid), name)
  }
  return names
}

const AT_PAGESZ = 6n
const AT_CLKTCK = 17n

export interface KernelUnits {
  readonly pageBytes: number
  readonly ticksPerSecond: number
}

/** /proc/self/auxv: pairs of words from the kernel, given at the start. Pages are 64 KiB on some ARM machines. */
export function parseKernelUnits(auxv: Buffer): KernelUnits {
  let [pageBytes, ticksPerSecond] = [4096, 100]
  for (let at = 0; at + 16 <= auxv.length; at += 16) {
    const value = Number(auxv.readBigUInt64LE(at + 8))
    const key = auxv.readBigUInt64LE(at)
    if (key === AT_PAGESZ && value >= 1024 && value <= 1 << 20) pageBytes = value
    if (key === AT_CLKTCK && value >= 1 && value <= 1_000_000) ticksPerSecond = value
  }
  return { pageBytes, ticksPerSecond }
}
