/** Processes that the kernel ended to free memory of the host, or of their cgroup. */
import type { GpuEvent } from '../../core/model.ts'
import type { KernelLines } from '../kernel-log.ts'

export interface OomKill {
  readonly pid: number
  readonly name: string
  readonly isCgroup: boolean
}

const LINE = /(Memory cgroup out|Out) of memory: Killed process (\d+) \(([^)]*)\)/

export const OOM_KILL_LINES: KernelLines<OomKill> = {
  mark: ': Killed process ',
  parse: parseKillLine,
  without: 'a run that the kernel kills because memory ran out is reported as killed, without the cause',
}

/** null: a line about something else. */
export function parseKillLine(line: string): OomKill | null {
  const match = LINE.exec(line)
  if (!match) return null
  const [, scope = '', pid = '', name = ''] = match
  return { pid: Number(pid), name, isCgroup: scope.startsWith('Memory cgroup') }
}

export function killEvent({ pid, name, isCgroup }: OomKill, at: number): GpuEvent {
  const why = isCgroup ? 'its cgroup had reached its memory limit' : 'the host ran out of memory'
  return {
    kind: 'event',
    at,
    gpu: null,
    event: 'oom_kill',
    code: pid,
    message: `the kernel killed ${name} (PID ${pid}): ${why}`,
    origin: 'kmsg',
  }
}
