/** Runs that ended without a report: their process is gone, or they were silent for too long. */
import { hostname } from 'node:os'
import { formatDuration } from '../core/format.ts'
import type { Reading } from '../core/model.ts'
import { isStillRunning, ownIdentity, startTicksOf } from '../core/process-identity.ts'
import type { RunProcessRef } from '../core/source-contract.ts'
import type { Outcome, RunPost, RunProcess, RunRecord } from './run-record.ts'

/** A process may be gone while its last report is still on its way, or waits in its spool for the agent. */
export const SILENCE_MS = 60_000
/** After a start: senders that waited for the agent retry at intervals of up to half a minute. */
const GRACE_MS = 5 * 60_000

export interface PresumedEnd {
  readonly outcome: Outcome
  readonly message: string
  readonly endedAt: number
}

/** Closes the runs that have such an end; returns how many. */
export async function closeRuns(given: {
  readonly runs: readonly RunRecord[]
  readonly endOf: (run: RunRecord) => PresumedEnd | null
  readonly change: (id: string, make: (known: RunRecord | undefined) => RunRecord | null) => Promise<RunRecord | null>
}): Promise<number> {
  const { runs, endOf, change } = given
  let closed = 0
  for (const run of runs) {
    if (run.endedAt !== null || !endOf(run)) continue
    await change(run.id, (known) => {
      // It may have reported while it waited for its turn.
      const end = known ? endOf(known) : null
      if (!known || !end) return null
      closed++
      return { ...known, ...end, endIsPresumed: true }
    })
  }
  return closed
}

/** The process that posts a run, when it runs on this host; in another PID namespace its PID says nothing. */
export function seenProcess({ host, pid }: RunPost): RunProcess | null {
  const start = host === hostname() && pid !== null && pid > 0 ? startTicksOf(pid) : null
  return pid === null || start === null ? null : { pid, start, boot: ownIdentity().bootId }
}

/** The processes of runs that go on, on this host. */
export function runProcesses(runs: readonly RunRecord[]): readonly RunProcessRef[] {
  const going = runs.filter(({ endedAt, provenance }) => endedAt === null && provenance === 'live')
  return going.flatMap(({ id, processes }) => processes.filter(({ boot }) => !isEarlierBoot(boot)).map(({ pid }) => ({ pid, run: id })))
}

/** null: it continues, as far as is known. `listeningSince`: before it nobody could have heard anything. */
export function presumedEnd(run: RunRecord, heardAt: number, listeningSince: number, now: number, staleMs: Reading): PresumedEnd | null {
  if (run.endedAt !== null || now - heardAt < SILENCE_MS) return null
  const endedAt = Math.max(run.startedAt, heardAt)
  // The end holds the time: a time inside the text would be in somebody else's time zone.
  const silence = `no sign of life for ${formatDuration(now - heardAt)}`
  if (run.processes.length > 0 && run.processes.every(({ boot }) => isEarlierBoot(boot)))
    return { outcome: 'killed', message: 'its machine was shut down or restarted', endedAt }
  if (run.processes.length > 0 && run.processes.every(({ pid, start }) => !isStillRunning(pid, start))) {
    const pids = run.processes.map(({ pid }) => pid)
    const shown = pids.length > 4 ? `${pids.slice(0, 4).join(', ')} …` : pids.join(', ')
    return { outcome: 'killed', message: `its process (${shown}) is gone; ${silence}`, endedAt }
  }
  if (staleMs === null || now - heardAt < staleMs || now - listeningSince < GRACE_MS) return null
  return { outcome: 'failed', message: silence, endedAt }
}

/** Whether a run whose end was presumed may still be there: somewhere else, or in a process that is not gone. */
export function mayGoOn({ processes }: RunRecord): boolean {
  return processes.length === 0 || processes.some(({ pid, start, boot }) => !isEarlierBoot(boot) && isStillRunning(pid, start))
}

/** A process does not outlive the boot in which it was seen. */
function isEarlierBoot(boot: string | null | undefined): boolean {
  const now = ownIdentity().bootId
  return boot != null && now !== null && boot !== now
}
