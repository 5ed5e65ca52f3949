/** Pure readers of what Linux writes into /proc. */
import type { Reading } from '../../model.ts'

export interface CpuTimes {
  /** Ticks of all processors since the start, and those of them without work. */
  readonly total: number
  readonly idle: number
}

/** The first line of /proc/stat: `cpu  user nice system idle iowait irq softirq steal …`; guest time is already in user's. */
export function parseCpuTimes(stat: string): CpuTimes | null {
  const end = stat.indexOf('\n')
  const fields = (end < 0 ? stat : stat.slice(0, end)).split(/\s+/)
  if (fields[0] !== 'cpu' || fields.length < 5) return null
  let total = 0
  for (let field = 1; field <= 8; field++) total += Number(fields[field] ?? 0)
  const idle = Number(fields[4]) + Number(fields[5] ?? 0)
  return Number.isFinite(total) && Number.isFinite(idle) ? { total, idle } : null
}

/** How many `cpuN` lines there are: processors that are switched on. */
export function countCpus(stat: string): Reading {
  let count = 0
  for (let at = stat.indexOf('\ncpu'); at >= 0; at = stat.indexOf('\ncpu', at + 4)) count++
  return count === 0 ? null : count
}

/** Epoch seconds of the machine's start. */
export function parseBootTime(stat: string): Reading {
  const match = /^btime (\d{1,12})$/m.exec(stat)
  return match === null ? null : Number(match[1])
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

export function parseMemory(meminfo: string): HostMemory {
  const kibibytes = (name: string): Reading => {
    const match = new RegExp(`^${name}:\\s+(\\d{1,15}) kB$`, 'm').exec(meminfo)
    return match === null ? null : Number(match[1]) * 1024
  }
  const difference = (a: Reading, b: Reading) => (a === null || b === null ? null : Math.max(0, a - b))
  const memoryTotalBytes = kibibytes('MemTotal')
  const memoryAvailableBytes = kibibytes('MemAvailable')
  const swapTotalBytes = kibibytes('SwapTotal')
  return {
    memoryTotalBytes,
    memoryUsedBytes: difference(memoryTotalBytes, memoryAvailableBytes),
    memoryAvailableBytes,
    swapTotalBytes,
    swapUsedBytes: difference(swapTotalBytes, kibibytes('SwapFree')),
  }
}

export interface ProcessStat {
  readonly name: string
  readonly state: string
  readonly parentPid: number
  /** User and system time, in clock ticks. */
  readonly cpuTicks: number
  /** Since the machine's start, in clock ticks. */
  readonly startTicks: number
  readonly residentPages: number
}

/** /proc/PID/stat. The name stands in parentheses and may hold spaces and parentheses itself, so the last one ends it. */
export function parseProcessStat(stat: string): ProcessStat | null {
  const open = stat.indexOf('(')
  const close = stat.lastIndexOf(')')
  if (open < 0 || close < open) return null
  const fields = stat.slice(close + 2).split(' ')
  const [state, parent, user, system, start, resident] = [0, 1, 11, 12, 19, 21].map((field) => fields[field])
  const numbers = [parent, user, system, start, resident].map((field) => (field === undefined || field === '' ? Number.NaN : Number(field)))
  const [parentPid = 0, userTicks = 0, systemTicks = 0, startTicks = 0, residentPages = 0] = numbers
  if (!state || numbers.some((value) => !Number.isFinite(value))) return null
  return {
    name: stat.slice(open + 1, close),
    state,
    parentPid,
    cpuTicks: userTicks + systemTicks,
    startTicks,
    residentPages: Math.max(0, residentPages),
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

/** /proc/self/auxv: pairs of words, what the kernel told the program at its start. Pages are 64 KiB on some ARM machines. */
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
