/** Which process a PID means: PIDs are reused, and are valid within one boot and one PID namespace only. */
import { hostname } from 'node:os'
import type { Reading } from './model.ts'
import { errorCode, tryReadLink, tryReadText } from './system-file.ts'

const PROC = '/proc'

export interface ProcessStat {
  readonly name: string
  readonly state: string
  readonly parentPid: number
  /** User and system time, in clock ticks. */
  readonly cpuTicks: number
  /** Since boot, in clock ticks. */
  readonly startTicks: number
  readonly residentPages: number
}

/** /proc/PID/stat. The name is in parentheses and may contain some, so the last one ends it. */
export function parseProcessStat(stat: string): ProcessStat | null {
  const open = stat.indexOf('(')
  const close = stat.lastIndexOf(')')
  if (open < 0 || close < open) return null
  const fields = stat.slice(close + 2).split(' ', 22)
  const state = fields[0]
  const parentPid = numberOf(fields[1])
  const cpuTicks = numberOf(fields[11]) + numberOf(fields[12])
  const startTicks = numberOf(fields[19])
  const residentPages = numberOf(fields[21])
  if (!state || !Number.isFinite(parentPid + cpuTicks + startTicks + residentPages)) return null
  return { name: stat.slice(open + 1, close), state, parentPid, cpuTicks, startTicks, residentPages: Math.max(0, residentPages) }
}

function numberOf(field: string | undefined): number {
  return field === undefined || field === '' ? Number.NaN : Number(field)
}

/** Epoch seconds of the boot, from /proc/stat. */
export function parseBootTime(stat: string): Reading {
  const match = /^btime (\d{1,12})$/m.exec(stat)
  return match === null ? null : Number(match[1])
}

/** Start of a process in ticks since boot; null: it is gone, or no /proc. */
export function startTicksOf(pid: number, proc = PROC): Reading {
  return statOf(pid, proc)?.startTicks ?? null
}

function statOf(pid: number, proc: string): ProcessStat | null {
  return parseProcessStat(tryReadText(`${proc}/${pid}/stat`) ?? '')
}

/** A process, and where its PID is valid; null where unknown. */
export interface ProcessIdentity {
  readonly pid: number
  readonly startTicks: Reading
  readonly host: string
  readonly bootId: string | null
  readonly pidNamespace: string | null
}

export function ownIdentity(proc = PROC): ProcessIdentity {
  return {
    pid: process.pid,
    startTicks: startTicksOf(process.pid, proc),
    host: hostname(),
    bootId: tryReadText(`${proc}/sys/kernel/random/boot_id`)?.trim() ?? null,
    pidNamespace: tryReadLink(`${proc}/self/ns/pid`),
  }
}

/** Whether this very process still runs; null: unknown from here (another machine, boot or container). */
export function isSameProcess(then: ProcessIdentity, proc = PROC): boolean | null {
  const own = ownIdentity(proc)
  const isSameMachine = own.bootId === null ? then.host === own.host : true
  if (then.bootId !== own.bootId || then.pidNamespace !== own.pidNamespace || !isSameMachine) return null
  return isStillRunning(then.pid, then.startTicks, proc)
}

/** False also for a reused PID and for a zombie. A process that cannot be looked at counts as running: never declare one dead on a guess. */
export function isStillRunning(pid: number, startTicks: Reading, proc = PROC): boolean {
  const found = statOf(pid, proc)
  if (found === null) return isPidTaken(pid)
  return found.state !== 'Z' && found.state !== 'X' && (startTicks === null || found.startTicks === startTicks)
}

export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}
