/** The alerts of an agent, and what people do about them. */
import type { AgentClient } from '../core/agent-client.ts'
import type { AlertView } from '../core/alert-contract.ts'
import { formatClock, printable } from '../core/format.ts'
import { askAlerts } from '../core/known/picture.ts'
import { userNameOrNumber } from '../core/user-name.ts'
import type { AlertDesk } from './feed.ts'
import type { LiveState } from './live-state.ts'

export const QUIET_HOURS = 4

export class AgentAlerts implements AlertDesk {
  readonly #agent: AgentClient
  readonly #state: Pick<LiveState, 'takeAlerts' | 'silenceEnds'>

  constructor(agent: AgentClient, state: Pick<LiveState, 'takeAlerts' | 'silenceEnds'>) {
    this.#agent = agent
    this.#state = state
  }

  async refresh(): Promise<void> {
    const answer = await askAlerts((path) => this.#agent.get(path))
    this.#state.takeAlerts(answer)
    if (answer) await this.refreshSilences()
  }

  async refreshSilences(): Promise<void> {
    const { silences } = await this.#agent.get<{ silences: readonly { readonly id: string; readonly until: number }[] }>('/api/v1/silences')
    this.#state.silenceEnds = new Map(silences.map(({ id, until }) => [id, until]))
  }

  async acknowledge(fingerprint: string): Promise<string> {
    const path = `/api/v1/alerts/${encodeURIComponent(fingerprint)}/ack`
    const { acknowledged } = await this.#agent.post<AlertView>(path, { seconds: QUIET_HOURS * 3600, by: userNameOrNumber() })
    await this.refresh()
    return `acknowledged by ${printable(acknowledged?.by ?? '')} until ${clock(acknowledged?.until)}`
  }

  /** Only this finding: others of the same kind still notify. */
  async silence(fingerprint: string): Promise<string> {
    const body = {
      matchers: [{ name: 'fingerprint', operator: '=', value: fingerprint }],
      seconds: QUIET_HOURS * 3600,
      comment: 'from gpuwarden top',
      by: userNameOrNumber(),
    }
    const { id, until } = await this.#agent.post<{ id: string; until: number }>('/api/v1/silences', body)
    await this.refresh()
    return `silenced until ${clock(until)}; "gpuwarden alerts unsilence ${printable(id)}" ends it`
  }
}

function clock(at: number | undefined): string {
  return at === undefined ? 'N/A' : formatClock(at, Date.now())
}
