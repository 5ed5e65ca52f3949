/** The alerts of an agent, and what people do about them. */

import { formatClock, printable } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import { userNameOrNumber } from '../core/user-name.ts'
import { type AgentAddress, AgentRefusal, askJson, postJson } from './agent-client.ts'
import type { AlertDesk } from './feed.ts'
import type { AlertData } from './screen-data.ts'

const TIMEOUT_MS = 5000
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
  readonly #address: AgentAddress
  readonly #state: { alerts: readonly AlertData[] | null }

  constructor(address: AgentAddress, state: { alerts: readonly AlertData[] | null }) {
    this.#address = address
    this.#state = state
  }

  async refresh(): Promise<void> {
    try {
      const [{ alerts }, { silences }] = await Promise.all([
        askJson<{ alerts: readonly Told[] }>(this.#address, '/api/v1/alerts', TIMEOUT_MS),
        askJson<{ silences: readonly { readonly id: string; readonly until: number }[] }>(this.#address, '/api/v1/silences', TIMEOUT_MS),
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
      if (!(error instanceof AgentRefusal && [404, 503].includes(error.status))) throw error
      this.#state.alerts = null
    }
  }

  async acknowledge(fingerprint: string): Promise<string> {
    const path = `/api/v1/alerts/${encodeURIComponent(fingerprint)}/ack`
    const { acknowledged } = await postJson<Told>(this.#address, path, { seconds: QUIET_HOURS * 3600, by: userNameOrNumber() }, TIMEOUT_MS)
    await this.refresh()
    return `acknowledged by ${printable(acknowledged?.by ?? '')} until ${clock(acknowledged?.until)}`
  }

  /** This trouble alone: others of the same kind are told as before. */
  async silence(fingerprint: string): Promise<string> {
    const body = {
      matchers: [{ name: 'fingerprint', operator: '=', value: fingerprint }],
      seconds: QUIET_HOURS * 3600,
      comment: 'from the terminal dashboard',
      by: userNameOrNumber(),
    }
    const { id, until } = await postJson<{ id: string; until: number }>(this.#address, '/api/v1/silences', body, TIMEOUT_MS)
    await this.refresh()
    return `silenced until ${clock(until)}; "gpuwarden alerts unsilence ${printable(id)}" ends it`
  }
}

function clock(at: number | undefined): string {
  return at === undefined ? 'N/A' : formatClock(at, Date.now())
}
