/** Whether the machine is shutting down, as systemd says to anybody who asks. */
import { execFile } from 'node:child_process'
import type { Log } from '../core/kinds.ts'
import type { Hub } from './hub.ts'

const ASK_MS = 1000

export function isShuttingDown(): Promise<boolean> {
  return new Promise((resolve) => {
    // It exits with 1 in this state; where there is no systemd, nothing is known.
    execFile('systemctl', ['is-system-running'], { timeout: ASK_MS }, (_error, stdout) => resolve(stdout.trim() === 'stopping'))
  })
}

/** Runs that are killed along with the agent did not die by themselves. */
export function noteShutdown(hub: Hub, log: Log): void {
  const at = Date.now()
  const message = 'this machine was shutting down'
  log.info({}, message)
  const event = { kind: 'event', at, gpu: null, event: 'shutdown', code: at, message, origin: 'systemd' } as const
  hub.receive({ source: 'host', provenance: 'live', at, samples: [event] })
}
