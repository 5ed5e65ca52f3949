/** Whether the machine is shutting down, as systemd says to anybody who asks. */
import { execFile } from 'node:child_process'

const ASK_MS = 1000

export function isShuttingDown(): Promise<boolean> {
  return new Promise((resolve) => {
    // It exits with 1 in this state; where there is no systemd, nothing is known.
    execFile('systemctl', ['is-system-running'], { timeout: ASK_MS }, (_error, stdout) => resolve(stdout.trim() === 'stopping'))
  })
}
