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

/** False also for one that has ended and only waits for its parent to notice. */
export function isAlive(pid: number, start: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] !== 'Z' && fields[0] !== 'X' && Number(fields[19]) === start
  } catch (error) {
    // Anything else than "there is none" leaves it open, and nobody is declared dead on a guess.
    const { code } = error as NodeJS.ErrnoException
    return code !== 'ENOENT' && code !== 'ESRCH'
  }
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
