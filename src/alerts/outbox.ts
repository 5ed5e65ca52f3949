/** The queues and couriers of all channels. */
import type { AlertsOptions, ChannelHealth } from './alerts-api.ts'
import { ChannelQueue } from './channel-queue.ts'
import { Composer } from './composer.ts'
import { Courier } from './courier.ts'
import type { Journal } from './journal.ts'
import { type ChannelProblem, tellOthers } from './refused-channel.ts'
import { seriesFor } from './series.ts'
import type { StepCourses } from './step-courses.ts'
import { isInWindow } from './time-window.ts'

export interface OutboxOptions {
  readonly alerts: AlertsOptions
  readonly journal: Journal
  readonly courses: StepCourses
  readonly commit: () => Promise<boolean>
  /** Observed time of delivery. */
  readonly nowMs: () => number
  /** The time of events, where charts end. */
  readonly eventTime: () => number
}

export class Outbox {
  readonly queues: ReadonlyMap<string, ChannelQueue>
  readonly #options: OutboxOptions
  readonly #couriers = new Map<string, Courier>()
  #hasChartFailed = false

  constructor(options: OutboxOptions) {
    this.#options = options
    const { alerts, journal, commit, nowMs } = options
    const { settings, now, log } = alerts
    const composer = this.#composer()
    const queues = new Map<string, ChannelQueue>()
    for (const [name, channel] of alerts.channels) {
      const queue = new ChannelQueue(name, journal)
      queues.set(name, queue)
      const courier = new Courier({
        ...{ channel, queue, composer, commit, now, nowMs, log },
        random: alerts.random ?? Math.random,
        maxAgeMs: settings['alerts.max_age_hours'] * 3_600_000,
        perHour: settings['alerts.messages_per_hour'],
        burst: settings['alerts.burst'],
        timeoutMs: alerts.deliveryTimeoutMs ?? 60_000,
        onProblem: (problem, severity) => this.#tellOthers({ channel: name, problem, severity }),
      })
      this.#couriers.set(name, courier)
    }
    this.queues = queues
    this.#dropUnknownChannels()
  }

  /** Sends what is due; resolves when nothing more is. */
  async run(): Promise<void> {
    await Promise.all([...this.#couriers.values()].map((courier) => courier.run()))
  }

  async close(): Promise<void> {
    const graceMs = this.#options.alerts.closeGraceMs ?? 5000
    await Promise.all([...this.#couriers.values()].map((courier) => courier.close(graceMs)))
  }

  health(): readonly ChannelHealth[] {
    const now = this.#options.alerts.now()
    return [...this.queues.values()].map((queue) => {
      const courier = this.#couriers.get(queue.name)
      const spooled = queue.current ? [queue.current, ...queue.refused] : queue.refused
      const since = [...[...queue.waiting.values()].map((notice) => notice.at), ...spooled.map(({ message }) => message.at)]
      return {
        channel: queue.name,
        results: { ...(courier?.counts ?? { delivered: 0, retried: 0, refused: 0, expired: 0 }) },
        depth: since.length + queue.letters.size,
        oldestAgeMs: since.length === 0 ? null : Math.max(0, now - Math.min(...since)),
        attempts: queue.current?.attempts ?? 0,
        lastFault: courier?.lastFault ?? null,
        // A message that was tried in vain waits: the other side is away.
        problem: this.#idle(queue.name) ?? courier?.refusal ?? queue.current?.lastReason ?? null,
      }
    })
  }

  /** Takes one entry of a journal that was found late. */
  join(key: string, value: unknown): void {
    this.queues.get(channelOf(key))?.join(key.split('/').slice(2).join('/'), value)
  }

  /** Whether a channel refuses messages. */
  get isRefused(): boolean {
    return [...this.#couriers.values()].some(({ refusal }) => refusal !== null)
  }

  #idle(channel: string): string | null {
    return this.#options.alerts.channels.get(channel)?.idle?.() ?? null
  }

  #tellOthers(problem: ChannelProblem): void {
    const { alerts, nowMs } = this.#options
    tellOthers(problem, {
      queues: this.queues,
      routes: alerts.settings['alerts.routes'],
      isWorking: (channel) => this.#idle(channel) === null && this.#couriers.get(channel)?.refusal === null,
      ...{ host: alerts.state.hostname, now: alerts.now(), nowMs: nowMs() },
    })
  }

  #composer(): Composer {
    const { alerts, eventTime, courses } = this.#options
    const { settings, state, history, log } = alerts
    const charts = new Map(alerts.detectors?.map((detector) => [detector.name, detector.charts]))
    return new Composer({
      groupWaitMs: settings['alerts.group_seconds'] * 1000,
      webUiUrl: settings['alerts.dashboard_url'],
      host: state.hostname,
      isQuiet: (at) => settings['alerts.quiet_hours'].some((window) => isInWindow(window, at)),
      seriesOf: (alert) => {
        try {
          const { gpu: id, gpuIndex } = alert.finding.subject
          const info = state.gpus().find((gpu) => (id === null ? gpu.info.index === gpuIndex : gpu.info.id === id))?.info
          return seriesFor(alert, charts.get(alert.finding.detector) ?? [], { history, info, courses }, eventTime())
        } catch (error) {
          // A message without its chart is better than none.
          if (!this.#hasChartFailed) log.error({ err: error }, 'the chart of an alert could not be drawn; messages are sent without it')
          this.#hasChartFailed = true
          return null
        }
      },
    })
  }

  #dropUnknownChannels(): void {
    const { journal, alerts } = this.#options
    const left = journal.entries('channel/').filter(([key]) => !this.queues.has(channelOf(key)))
    if (left.length === 0) return
    const names = [...new Set(left.map(([key]) => channelOf(key)))]
    const waiting = left.filter(([key]) => /\/(waiting\/|refused\/|current$)/.test(key)).length
    for (const [key] of left) journal.delete(key)
    if (waiting > 0)
      alerts.log.warn(
        { channels: names, waiting },
        `${waiting} alerts were waiting for channels that are no longer configured (${names.join(', ')}) and were dropped`,
      )
  }
}

function channelOf(key: string): string {
  return decodeURIComponent(key.split('/')[1] ?? '')
}
