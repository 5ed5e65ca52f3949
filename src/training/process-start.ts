/** When a process began, in the kernel's ticks since boot: with the PID it tells a process from a later user of the number. */
import { readFileSync } from 'node:fs'

/** 0 where the kernel does not say (no /proc). */
export function startOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
  } catch {
    // Gone, or no /proc here.
    return null
  }
}

export function ownStart(): number {
  return startOf(process.pid) ?? 0
}

export function isRunning(pid: number, start: number): boolean {
  const found = startOf(pid)
  if (found !== null) return start === 0 || found === start
  if (startOf(process.pid) !== null) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
