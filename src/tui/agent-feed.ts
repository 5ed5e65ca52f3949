/** Follows an agent: what it knows, what it knew, then its live stream, for as long as it takes. */
import type { IncomingMessage } from 'node:http'
import type { GpuView, HistoryAnswer, HubEvent } from '../core/kinds.ts'
import type { Finding, HostSample, ProcessView, Reading, Run } from '../core/model.ts'
import { AgentAlerts } from './agent-alerts.ts'
import { type AgentAddress, AgentRefusal, askJson, openAnswer } from './agent-client.ts'
import type { Feed } from './feed.ts'
import type { LiveState } from './live-state.ts'
import { revived } from './revive.ts'
import { EventReader, type ServerEvent } from './sse.ts'

export interface AgentFeedOptions {
  readonly address: AgentAddress
  readonly state: LiveState
  readonly isLocal: boolean
  readonly onChange: () => void
}

const TIMEOUT_MS = 5000
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 10_000
/** The agent says something every 15 s. */
const SILENCE_MS = 40_000
const MOST_RUNS = 16
const HISTORY = '/api/v1/history?field=utilizationRatio,memoryUsedBytes,memoryTotalBytes&from=-10m&step=1'

export class AgentFeed implements Feed {
  readonly isLocal: boolean
  readonly replay = null
  readonly alerts: AgentAlerts
  readonly #options: AgentFeedOptions
  #answer: IncomingMessage | null = null
  #timer: NodeJS.Timeout | null = null
  #silence: NodeJS.Timeout | null = null
  #lastEventId: string | null = null
  #pauseMs = FIRST_PAUSE_MS
  #isStopped = false

  constructor(options: AgentFeedOptions) {
    this.#options = options
    this.isLocal = options.isLocal
    this.alerts = new AgentAlerts(options.address, options.state)
  }

  /** Rejects when the agent refuses at the very beginning; later troubles are shown and tried again. */
  async start(): Promise<void> {
    await this.#readState(true)
    await this.#listen()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer) clearTimeout(this.#timer)
    if (this.#silence) clearTimeout(this.#silence)
    this.#answer?.destroy()
  }

  async #readState(withHistory: boolean): Promise<void> {
    const { address, state, onChange } = this.#options
    const ask = <T>(path: string) => askJson<T>(address, path, TIMEOUT_MS)
    const [health, gpus, processes, host, findings] = await Promise.all([
      ask<{ hostname: string; sources: never[] }>('/api/v1/health'),
      ask<{ gpus: GpuView[] }>('/api/v1/gpus'),
      ask<{ processes: ProcessView[] }>('/api/v1/processes'),
      ask<{ host: { sample: HostSample; ageMs: number } | null }>('/api/v1/host'),
      ask<{ findings: Finding[] }>('/api/v1/findings'),
    ])
    state.hostname = health.hostname
    state.setHealth(health.sources)
    state.begin(gpus.gpus, processes.processes, host.host)
    for (const finding of findings.findings) state.accept({ type: 'finding', finding })
    onChange()
    await this.#readRuns(withHistory)
    if (!withHistory) return
    for (const id of state.gpuIds()) {
      const answer = await ask<HistoryAnswer>(`${HISTORY}&gpu=${encodeURIComponent(id)}`)
      const [at = [], utilization = [], used = [], total = []] = answer.data
      state.backfill(
        id,
        at,
        utilization,
        used.map((bytes, index) => ratio(bytes, total[index] ?? null)),
      )
    }
    onChange()
  }

  async #readRuns(withHistory: boolean): Promise<void> {
    const { address, state } = this.#options
    try {
      const { runs } = await askJson<{ runs: Run[] }>(address, '/api/v1/runs', TIMEOUT_MS)
      for (const run of runs.filter((one) => one.endedAt === null).slice(0, MOST_RUNS)) {
        state.accept({ type: 'run', run: { ...run, gpus: run.gpus ?? [] } })
        if (!withHistory) continue
        const { data } = await askJson<{ data: unknown[][] }>(
          address,
          `/api/v1/runs/${encodeURIComponent(run.id)}/steps?fields=loss`,
          TIMEOUT_MS,
        )
        state.backfillLoss(
          run.id,
          (data[2] ?? []).map((loss) => (loss === null ? Number.NaN : Number(loss))),
        )
      }
    } catch (error) {
      // An older agent knows of no runs but those in its stream.
      if (!(error instanceof AgentRefusal && error.status === 404)) throw error
    }
  }

  async #listen(): Promise<void> {
    const { address, state, onChange } = this.#options
    const headers: Record<string, string> = this.#lastEventId === null ? {} : { 'last-event-id': this.#lastEventId }
    const answer = await openAnswer(address, '/api/v1/stream', { timeoutMs: TIMEOUT_MS, headers })
    if (this.#isStopped) {
      answer.destroy()
      return
    }
    this.#answer = answer
    this.#pauseMs = FIRST_PAUSE_MS
    state.linkLost = null
    const reader = new EventReader()
    answer.setEncoding('utf8')
    answer.on('data', (text: string) => {
      this.#heard()
      for (const event of reader.feed(text)) this.#take(event)
      onChange()
    })
    const lost = (reason: string) => {
      if (this.#answer !== answer) return
      this.#answer = null
      this.#lost(reason)
    }
    answer.once('error', (error) => lost(error.message))
    answer.once('close', () => lost('the connection was closed'))
    this.#heard()
  }

  #heard(): void {
    if (this.#silence) clearTimeout(this.#silence)
    this.#silence = setTimeout(() => this.#answer?.destroy(new Error(`silent for ${SILENCE_MS / 1000} s`)), SILENCE_MS)
  }

  #take({ id, event, data }: ServerEvent): void {
    const { state } = this.#options
    if (id !== null) this.#lastEventId = id
    if (event === 'hello') state.hostname = (JSON.parse(data) as { hostname: string }).hostname
    else if (event === 'reset') void this.#readState(false).catch((error: Error) => this.#answer?.destroy(error))
    else if (/^(tick|devices|health|finding|run|steps)$/.test(event)) state.accept(revived(JSON.parse(data) as HubEvent))
  }

  #lost(reason: string): void {
    if (this.#isStopped) return
    const { state, onChange } = this.#options
    if (this.#silence) clearTimeout(this.#silence)
    state.linkLost ??= { since: Date.now(), reason }
    onChange()
    this.#timer = setTimeout(() => {
      this.#listen().catch((error: Error) => this.#lost(error.message))
    }, this.#pauseMs)
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2)
  }
}

function ratio(used: Reading, total: Reading): Reading {
  return used === null || total === null || total <= 0 ? null : used / total
}
