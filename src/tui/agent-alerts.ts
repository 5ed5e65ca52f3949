/** The alerts of an agent, and what people do about them. */
import { userInfo } from 'node:os'
import { type AgentClient, AgentFault } from '../core/agent-client.ts'
import { formatClock, printable } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import type { AlertDesk } from './feed.ts'
import type { AlertData } from './screen-data.ts'

export const QUIET_HOURS = 4

/** As GET /api/v1/alerts tells it. */
interface Told {
  readonly fingerprint: string
  readonly state: AlertData['state']
  readonly finding: Finding
  readonly acknowledged: { readonly by: string; readonly until: number } | null
  readonly mutedBy: string | null
  readonly silence: string | null
}

export class AgentAlerts implements AlertDesk {
  readonly #agent: AgentClient
  readonly #state: { alerts: readonly AlertData[] | null }

  constructor(agent: AgentClient, state: { alerts: readonly AlertData[] | null }) {
    this.#agent = agent
    this.#state = state
  }

  async refresh(): Promise<void> {
    try {
      const [{ alerts }, { silences }] = await Promise.all([
        this.#agent.get<{ alerts: readonly Told[] }>('/api/v1/alerts'),
        this.#agent.get<{ silences: readonly { readonly id: string; readonly until: number }[] }>('/api/v1/silences'),
      ])
      const ends = new Map(silences.map(({ id, until }) => [id, until]))
      this.#state.alerts = alerts.map(({ finding, state, acknowledged, mutedBy, silence }) => ({
        finding,
        state,
        acknowledged,
        mutedBy,
        silencedUntil: silence === null ? null : (ends.get(silence) ?? null),
      }))
    } catch (error) {
      // Switched off, or an agent that knows of none: its findings are all there is.
      if (!(error instanceof AgentFault && [404, 503].includes(error.status))) throw error
      this.#state.alerts = null
    }
  }

  async acknowledge(fingerprint: string): Promise<string> {
    const path = `/api/v1/alerts/${encodeURIComponent(fingerprint)}/ack`
    const { acknowledged } = await this.#agent.post<Told>(path, { seconds: QUIET_HOURS * 3600, by: userName() })
    await this.refresh()
    return `acknowledged by ${printable(acknowledged?.by ?? '')} until ${clock(acknowledged?.until)}`
  }

  /** This trouble alone: others of the same kind are told as before. */
  async silence(fingerprint: string): Promise<string> {
    const body = {
      matchers: [{ name: 'fingerprint', operator: '=', value: fingerprint }],
      seconds: QUIET_HOURS * 3600,
      comment: 'from gpuwarden top',
      by: userName(),
    }
    const { id, until } = await this.#agent.post<{ id: string; until: number }>('/api/v1/silences', body)
    await this.refresh()
    return `silenced until ${clock(until)}; "gpuwarden alerts unsilence ${printable(id)}" ends it`
  }
}

function clock(at: number | undefined): string {
  return at === undefined ? 'N/A' : formatClock(at, Date.now())
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run under a number that nobody has a name for.
    return String(process.getuid?.() ?? '')
  }
}
