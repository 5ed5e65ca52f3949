/** Follows an agent: what it knows, what it knew, then its live stream, for as long as it takes. */
import type { IncomingMessage } from 'node:http'
import { type AgentAddress, AgentClient, AgentFault } from '../core/agent-client.ts'
import type { RankStacks } from '../core/hang/rank-stacks.ts'
import { stacksText } from '../core/hang/stacks-text.ts'
import type { HistoryAnswer, StreamEvent } from '../core/kinds.ts'
import { askPicture, type Picture } from '../core/known/picture.ts'
import { numberOf, revived } from '../core/known/revive.ts'
import type { PlaybackState } from '../core/playback.ts'
import { AgentAlerts } from './agent-alerts.ts'
import type { Feed } from './feed.ts'
import type { LiveState } from './live-state.ts'
import { EventReader, type ServerEvent } from './sse.ts'

export interface AgentFeedOptions {
  readonly address: AgentAddress
  readonly state: LiveState
  readonly isLocal: boolean
  readonly onChange: () => void
}

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
  readonly #agent: AgentClient
  #answer: IncomingMessage | null = null
  #timer: NodeJS.Timeout | null = null
  #silence: NodeJS.Timeout | null = null
  #lastEventId: string | null = null
  /** What came before the picture waits for it, so that nothing older overwrites something newer. */
  #waiting: StreamEvent[] | null = null
  #pauseMs = FIRST_PAUSE_MS
  #jumps: number | null = null
  #isStopped = false

  constructor(options: AgentFeedOptions) {
    this.#options = options
    this.isLocal = options.isLocal
    this.#agent = new AgentClient(options.address)
    this.alerts = new AgentAlerts(this.#agent, options.state)
  }

  /** Rejects when the agent refuses at the start; later problems are shown, and it tries again. */
  async start(): Promise<void> {
    this.#waiting = []
    try {
      await this.#listen()
      await this.#backfill(await this.#begin())
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async stacks(run: string): Promise<readonly string[]> {
    const { ranks } = await this.#agent.get<{ ranks: readonly RankStacks[] }>(`/api/v1/runs/${encodeURIComponent(run)}/stacks`)
    return stacksText(ranks, false)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer) clearTimeout(this.#timer)
    if (this.#silence) clearTimeout(this.#silence)
    this.#answer?.destroy()
  }

  #ask<T>(path: string): Promise<T> {
    return this.#agent.get<T>(path)
  }

  async #begin(): Promise<Picture> {
    const { state, onChange } = this.#options
    this.#waiting ??= []
    const picture = await askPicture((path) => this.#ask(path))
    state.begin(picture)
    for (const event of this.#waiting ?? []) state.accept(event)
    this.#waiting = null
    if (picture.alerts) await this.alerts.refreshSilences()
    onChange()
    return picture
  }

  /** What was before we came, for the graphs. */
  async #backfill({ gpus, runs }: Picture): Promise<void> {
    const { state, onChange } = this.#options
    for (const { id } of runs.filter(({ endedAt }) => endedAt === null).slice(0, MOST_RUNS)) {
      const { data } = await this.#ask<{ data: unknown[][] }>(`/api/v1/runs/${encodeURIComponent(id)}/steps?fields=loss`)
      state.backfillLoss(
        id,
        (data[2] ?? []).map((loss) => numberOf(loss) ?? Number.NaN),
      )
    }
    for (const { info } of gpus) {
      const { data } = await this.#ask<HistoryAnswer>(`${HISTORY}&gpu=${encodeURIComponent(info.id)}`)
      state.past.backfill(info.id, data)
    }
    onChange()
  }

  async #listen(): Promise<void> {
    const { state, onChange } = this.#options
    const headers: Record<string, string> = this.#lastEventId === null ? {} : { 'last-event-id': this.#lastEventId }
    const answer = await this.#agent.stream('/api/v1/stream', headers)
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
    answer.once('close', () => lost('connection closed'))
    this.#heard()
  }

  #heard(): void {
    if (this.#silence) clearTimeout(this.#silence)
    this.#silence = setTimeout(() => this.#answer?.destroy(new Error(`no data for ${SILENCE_MS / 1000} s`)), SILENCE_MS)
  }

  #take({ id, event, data }: ServerEvent): void {
    const { state } = this.#options
    if (id !== null) this.#lastEventId = id
    if (event === 'hello') state.hostname = (JSON.parse(data) as { hostname: string }).hostname
    else if (event === 'reset') this.#inBackground(this.#begin())
    else if (/^(tick|devices|health|finding|alerts|run|steps|playback)$/.test(event)) this.#accept(revived(JSON.parse(data) as StreamEvent))
  }

  #accept(event: StreamEvent): void {
    if (event.type === 'playback' && this.#hasJumped(event.playback)) {
      this.#options.state.forget()
      this.#options.state.accept(event)
      this.#inBackground(this.#begin().then((picture) => this.#backfill(picture)))
      return
    }
    if (this.#waiting) this.#waiting.push(event)
    else this.#options.state.accept(event)
    if (event.type !== 'alerts') return
    if (event.hasMore) this.#inBackground(this.alerts.refresh())
    else if (event.silencesChanged) this.#inBackground(this.alerts.refreshSilences())
  }

  /** Whether a recording has gone to another moment: what is known is of another time. */
  #hasJumped({ jumps }: PlaybackState): boolean {
    const before = this.#jumps
    this.#jumps = jumps
    return before !== null && jumps > before
  }

  /** What fails here fails the connection, which is tried again. */
  #inBackground(work: Promise<unknown>): void {
    work.catch((error: Error) => this.#answer?.destroy(error))
  }

  #lost(reason: string): void {
    if (this.#isStopped) return
    const { state, onChange } = this.#options
    if (this.#silence) clearTimeout(this.#silence)
    state.linkLost ??= { since: state.now(), reason }
    onChange()
    this.#timer = setTimeout(() => {
      this.#listen().then(
        () => this.#waiting && this.#inBackground(this.#begin()),
        (error: Error) => this.#lost(error instanceof AgentFault ? error.reason : error.message),
      )
    }, this.#pauseMs)
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2)
  }
}
