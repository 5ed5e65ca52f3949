/** Signals processes of this machine, after checking that the PID still means the same one. */
import type { ProcessView } from './model.ts'
import { parseBootTime, startTicksOf } from './process-identity.ts'
import { tryReadLink, tryReadText } from './system-file.ts'

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGKILL'

/** USER_HZ is 100 on every Linux. */
const TICKS_PER_SECOND = 100
/** The boot time is only known to the second. */
const START_TOLERANCE_MS = 2000
const KEPT_LIMITS = /^Max (cpu time|resident set|processes|open files|locked memory|address space)/

export type Identity = { readonly ok: true; readonly startTicks: number } | { readonly ok: false; readonly reason: string }

/** Whether this process is still the one that the table shows. */
export function identify({ pid, info }: ProcessView): Identity {
  if (info?.startedAt == null) return { ok: false, reason: `process ${pid} is unknown on this machine` }
  const startTicks = startTicksOf(pid)
  if (startTicks === null) return { ok: false, reason: `process ${pid} has ended` }
  const bootSeconds = parseBootTime(tryReadText('/proc/stat') ?? '')
  if (bootSeconds === null) return { ok: false, reason: 'the boot time of this machine cannot be read' }
  const startedAt = bootSeconds * 1000 + (startTicks * 1000) / TICKS_PER_SECOND
  if (Math.abs(startedAt - info.startedAt) > START_TOLERANCE_MS)
    return { ok: false, reason: `process ${pid} is another one now: the PID was reused` }
  return { ok: true, startTicks }
}

/** Sends the signal, unless the PID was reused. Returns what to show. */
export function signal(pid: number, startTicks: number, name: SignalName): { readonly ok: boolean; readonly text: string } {
  const now = startTicksOf(pid)
  if (now === null) return { ok: false, text: `process ${pid} has already ended` }
  if (now !== startTicks) return { ok: false, text: `nothing sent: process ${pid} is another one now` }
  try {
    process.kill(pid, name)
    return { ok: true, text: `${name} sent to process ${pid}` }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EPERM') return { ok: false, text: `not allowed: process ${pid} belongs to another user` }
    if (code === 'ESRCH') return { ok: false, text: `process ${pid} has already ended` }
    throw error
  }
}

/** Checked before asking for confirmation. */
export function mayInterfere({ info }: ProcessView): boolean {
  const uid = process.getuid?.()
  return uid === 0 || (info?.uid ?? null) === uid
}

export interface LocalFacts {
  readonly folder: string | null
  readonly limits: readonly string[] | null
  readonly environment: readonly string[] | null
}

export function localFacts(pid: number): LocalFacts {
  const limits = tryReadText(`/proc/${pid}/limits`)
  const environment = tryReadText(`/proc/${pid}/environ`)
  return {
    folder: tryReadLink(`/proc/${pid}/cwd`),
    limits:
      limits
        ?.split('\n')
        .filter((line) => KEPT_LIMITS.test(line))
        .map((line) => line.replace(/^Max /, '').replace(/\s+/g, ' ').trim()) ?? null,
    environment: environment?.split('\0').filter((variable) => variable !== '') ?? null,
  }
}
