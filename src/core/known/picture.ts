/** What a screen starts with: everything the agent knows at one moment. The stream brings the rest. */
import type { GpuView } from '../kinds.ts'
import type { Finding, GpuEvent, HostSample, ProcessView, Run, SourceHealth } from '../model.ts'
import type { AlertsAnswer } from './alerts.ts'

export interface Picture {
  /** The agent's time. */
  readonly at: number
  readonly hostname: string
  readonly health: readonly SourceHealth[]
  readonly gpus: readonly GpuView[]
  readonly processes: readonly ProcessView[]
  readonly host: { readonly sample: HostSample; readonly ageMs: number } | null
  readonly findings: readonly Finding[]
  readonly runs: readonly Run[]
  readonly events: readonly GpuEvent[]
  /** null: alerts are off. */
  readonly alerts: AlertsAnswer | null
}

/** Rejects with an error that has the `status` of a refusal. */
export type Ask = <Answer>(path: string) => Promise<Answer>

const NOT_FOUND = 404
const SWITCHED_OFF = 503

/** Listen for events before this call, and apply them after it. */
export async function askPicture(ask: Ask): Promise<Picture> {
  const [{ hostname, sources }, { at, gpus }, { processes }, { host }, { findings }, { events }, runs, alerts] = await Promise.all([
    ask<{ readonly hostname: string; readonly sources: readonly SourceHealth[] }>('/api/v1/health'),
    ask<Pick<Picture, 'at' | 'gpus'>>('/api/v1/gpus'),
    ask<Pick<Picture, 'processes'>>('/api/v1/processes'),
    ask<Pick<Picture, 'host'>>('/api/v1/host'),
    ask<Pick<Picture, 'findings'>>('/api/v1/findings'),
    ask<Pick<Picture, 'events'>>('/api/v1/events'),
    where(ask<Pick<Picture, 'runs'>>('/api/v1/runs'), [NOT_FOUND]),
    askAlerts(ask),
  ])
  return { at, hostname, health: sources, gpus, processes, host, findings, events, runs: runs?.runs ?? [], alerts }
}

export function askAlerts(ask: Ask): Promise<AlertsAnswer | null> {
  return where(ask<AlertsAnswer>('/api/v1/alerts'), [NOT_FOUND, SWITCHED_OFF])
}

/** null: the agent does not have it. */
async function where<Answer>(answer: Promise<Answer>, absent: readonly number[]): Promise<Answer | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Error && 'status' in error && absent.includes(Number(error.status))) return null
    throw error
  }
}
