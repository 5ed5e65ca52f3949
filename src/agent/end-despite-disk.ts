import { stuckSince } from '../core/disk-lane.ts'

/** Time for the last messages, such as the outcome of a run. */
const END_MS = 1000

export interface Unwritten {
  readonly dir: string
  readonly storeLines: number
  readonly logLines: number
}

/** A call that never returns cannot be canceled, and exit() waits for its thread; a signal does not. */
export function endDespiteDisk({ dir, storeLines, logLines }: Unwritten): void {
  const since = new Date(stuckSince() ?? Date.now()).toISOString()
  process.stderr.write(
    `gpuwarden: ${dir} does not answer, since ${since}: ${storeLines} lines of the logs, ${logLines} lines of gpu_monitor.log and the latest state of alerts, runs and detectors could not be written\n`,
  )
  setTimeout(() => {
    process.removeAllListeners('SIGTERM')
    process.kill(process.pid, 'SIGTERM')
  }, END_MS).unref()
}
