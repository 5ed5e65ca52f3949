/** The alert engine as the agent uses it: takes findings and levels, keeps what must not be lost, and lets the couriers deliver. */
import { EXIT, Failure } from '../core/failure.ts'
import type { AlertView, Delivery, Dropped, HubEvent, PastAlert } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import { ChangeWatch } from './alert-news.ts'
import type { AlertRecord } from './alert-record.ts'
import { healthOf, type Parts, viewOf } from './alert-view.ts'
import type { Alerts, AlertsHealth, AlertsOptions } from './alerts-api.ts'
import { deliver } from './courier.ts'
import { Dispatch } from './dispatch.ts'
import { AlertEngine, type Transition } from './engine.ts'
import { Heartbeat } from './heartbeat.ts'
import { Journal } from './journal.ts'
import { Levels } from './levels.ts'
import type { Matcher } from './matcher.ts'
import { EventTime, ObservedTime, type ObservedTimeState } from './observed-time.ts'
import { Outbox } from './outbox.ts'
import { PastAlerts, type PastRange } from './past-alerts.ts'
import { checkRoutes } from './routes.ts'
import { Rules } from './rules.ts'
import { ruleChoices } from './settings.ts'
import { type Silence, Silences } from './silences.ts'
import { StepCourses } from './step-courses.ts'
import { SweepClock } from './sweep-clock.ts'
import { testMessage } from './test-message.ts'
import { endingsOf, RESTART_GRACE_MS } from './unconfirmed.ts'

const SLOW_SWEEP_MS = 5000
const COMMIT_DELAY_MS = 50
const ALERT = 'alert/'

/** Throws a Failure when the configuration cannot be meant: a route to a channel that does not exist. */
export function createAlerts(options: AlertsOptions): Alerts {
  checkRoutes(options.settings['alerts.routes'], new Set([...options.channels.keys(), ...(options.unusableChannels ?? [])]))
  return new AlertRoom(options)
}

class AlertRoom implements Alerts {
  readonly name = 'alerts'
  readonly news: ChangeWatch
  readonly #options: AlertsOptions
  readonly #journal: Journal
  readonly #rules: Rules
  readonly #engine: AlertEngine
  readonly #levels: Levels
  readonly #silences: Silences
  readonly #past: PastAlerts
  readonly #outbox: Outbox
  readonly #dispatch: Dispatch
  readonly #courses = new StepCourses()
  readonly #heartbeat: Heartbeat | null
  /** Of deliveries: by the clock of this machine. The engine's follows the events. */
  readonly #time = new ObservedTime()
  readonly #events = new EventTime()
  readonly #closing = new AbortController()
  #clock: SweepClock | null = null
  #commitTimer: NodeJS.Timeout | null = null
  #lastTickMs: number | null = null
  #lastLevelsMs = Number.NEGATIVE_INFINITY
  #lastReconcileMs = Number.NEGATIVE_INFINITY
  readonly #startedMs: number
  readonly #parts: Parts
  #hasFailed = false
  #closed: Promise<void> | null = null

  constructor(options: AlertsOptions) {
    this.#options = options
    const { settings, state, log, now } = options
    this.#journal = new Journal({
      dir: options.dir,
      log,
      now,
      ...(options.diskRetryMs === undefined ? {} : { retryMs: options.diskRetryMs }),
    })
    this.#rules = new Rules({
      choices: ruleChoices(settings),
      keepFiringSeconds: settings['alerts.keep_firing_seconds'],
      ignored: settings['alerts.ignore'],
      detectors: new Set(options.detectors),
    })
    this.#engine = new AlertEngine(this.#rules.patienceOf, options.limits)
    this.#levels = new Levels({
      rules: this.#rules,
      state,
      memoryThresholdRatio: options.memoryThresholdRatio ?? 0.8,
      recordOf: (fingerprint) => this.#engine.get(fingerprint),
    })
    this.#silences = new Silences(this.#journal, now)
    this.#past = new PastAlerts(this.#journal)
    const nowMs = () => this.#time.ms
    this.#restore()
    this.#startedMs = this.#time.ms
    this.#outbox = new Outbox({
      ...{ alerts: options, journal: this.#journal, courses: this.#courses, nowMs },
      commit: () => this.flush(),
      eventTime: () => this.#eventTime(),
    })
    this.#dispatch = new Dispatch({
      ...{ state, silences: this.#silences, queues: this.#outbox.queues, now, nowMs },
      idle: (channel) => this.idle(channel),
      routes: settings['alerts.routes'],
      maintenance: settings['alerts.maintenance'],
      owners: settings['alerts.owners'],
      repeatMs: settings['alerts.repeat_hours'] * 3_600_000,
      deliverSimulated: settings['alerts.simulated'],
    })
    const url = settings['alerts.heartbeat_url']
    const everyMs = settings['alerts.heartbeat_minutes'] * 60_000
    const method = settings['alerts.heartbeat_method']
    this.#heartbeat = url === null ? null : new Heartbeat({ url, method, everyMs, host: state.hostname, log })
    this.#parts = {
      ...{ engine: this.#engine, dispatch: this.#dispatch, outbox: this.#outbox },
      ...{ journal: this.#journal, heartbeat: this.#heartbeat, now },
    }
    this.news = new ChangeWatch({
      records: () => this.#engine.records(),
      recordOf: (fingerprint) => this.#engine.get(fingerprint),
      viewOf: (record) => viewOf(record, this.#parts),
      silences: () => this.#silences.list(),
      now,
      onFault: (error) => this.#inBackground(Promise.reject(error)),
    })
    const sweepMs = options.sweepMs ?? 1000
    if (sweepMs > 0) {
      this.#clock = new SweepClock(sweepMs, () => this.#inBackground(this.sweep()))
    }
    this.#inBackground(this.flush())
  }

  accept(event: HubEvent): void {
    if (this.#closed) return
    if (event.type === 'finding') this.#take(event.finding)
    else if (event.type === 'tick') {
      this.#lastTickMs = this.#time.advance(this.#options.now())
      this.#events.note(event.tick.at, this.#time.ms)
      const found: Finding[] = []
      this.#levels.tick(event.tick, found)
      for (const finding of found) this.#take(finding)
      this.#clock?.noteTick()
    } else if (event.type === 'steps') this.#courses.accept(event.steps)
    else if (event.type === 'run') this.#dispatch.noteRun(event.run)
    else if (event.type === 'health') {
      this.#clock?.hurry()
      this.#watchSources()
    }
  }

  dropped(): Dropped {
    const count = this.#engine.refused
    return { count, reason: count === 0 ? null : `more than ${this.#engine.size} alerts at once` }
  }

  list(): readonly AlertView[] {
    return [...this.#engine.records()].map((record) => viewOf(record, this.#parts))
  }

  history(range: PastRange = {}): readonly PastAlert[] {
    return this.#past.list(range)
  }

  silence(matchers: readonly Matcher[], until: number, comment: string, by: string): Silence {
    const silence = this.#silences.add(matchers, until, comment, by)
    this.#reconcileAll()
    this.#commitSoon()
    return silence
  }

  unsilence(id: string): boolean {
    const isGone = this.#silences.remove(id)
    this.#reconcileAll()
    this.#commitSoon()
    return isGone
  }

  silences(): readonly Silence[] {
    return this.#silences.list()
  }

  acknowledge(fingerprint: string, until: number, by: string): AlertView | null {
    const record = this.#engine.get(fingerprint)
    if (!record || record.phase === 'resolved') return null
    const now = this.#options.now()
    if (!Number.isFinite(until) || until <= now) throw new Failure('an acknowledgement has to end in the future', { exitCode: EXIT.usage })
    record.acknowledged = { at: now, until, by: by.slice(0, 200), severity: record.finding.severity }
    return this.#taken(record)
  }

  unacknowledge(fingerprint: string): AlertView | null {
    const record = this.#engine.get(fingerprint)
    if (!record?.acknowledged || record.phase === 'resolved') return null
    record.acknowledged = null
    return this.#taken(record)
  }

  idle(channel: string): string | null {
    return this.#options.channels.get(channel)?.idle?.() ?? null
  }

  async test(channel: string): Promise<Delivery> {
    const found = this.#options.channels.get(channel)
    const known = [...this.#options.channels.keys()].join(', ')
    if (!found) return { ok: false, retry: false, reason: `there is no channel "${channel}"; configured: ${known || 'none'}` }
    const message = testMessage(this.#options.state.hostname, this.#options.now(), this.#options.settings['alerts.dashboard_url'])
    return await deliver(found, message, this.#options.deliveryTimeoutMs ?? 60_000, this.#closing.signal)
  }

  channels(): readonly string[] {
    return [...this.#options.channels.keys()]
  }

  health(): AlertsHealth {
    return healthOf(this.#parts)
  }

  flush(): Promise<boolean> {
    if (this.#commitTimer) clearTimeout(this.#commitTimer)
    this.#commitTimer = null
    this.#writeDown()
    return this.#journal.commit()
  }

  async sweep(): Promise<void> {
    if (this.#closed) return
    const ms = this.#time.advance(this.#options.now())
    this.#follow(this.#engine.advance(this.#eventTime()))
    if (ms - this.#lastLevelsMs >= SLOW_SWEEP_MS) {
      this.#lastLevelsMs = ms
      this.#watchSources()
      this.#silences.sweep()
      if (this.#journal.isDue) this.#inBackground(this.flush())
      if (ms - this.#startedMs >= RESTART_GRACE_MS)
        for (const finding of endingsOf(this.#engine.records(), this.#options.state, this.#eventTime()))
          this.#follow(this.#engine.accept(finding, finding.at))
    }
    if (ms - this.#lastReconcileMs >= SLOW_SWEEP_MS) this.#reconcileAll()
    const isWatching = this.#lastTickMs !== null && ms - this.#lastTickMs < Math.max(60_000, this.#heartbeatMs())
    await Promise.all([this.#outbox.run(), this.#heartbeat?.beat(ms, isWatching)])
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#clock?.close()
    this.news.close()
    this.#heartbeat?.close()
    await this.#outbox.close()
    this.#closing.abort(new Error('gpuwarden stops'))
    if (this.#commitTimer) clearTimeout(this.#commitTimer)
    this.#writeDown()
    await this.#journal.close()
  }

  #take(finding: Finding): void {
    const admitted = this.#rules.admit(finding)
    if (!admitted) return
    // Before the first sample detectors only say again what held when they were last saved.
    if (this.#lastTickMs === null && finding.state === 'active' && this.#engine.isOldNews(finding)) return
    this.#time.advance(this.#options.now())
    this.#events.note(finding.at, this.#time.ms)
    const simulated = this.#isSimulated(finding)
    const { refused } = this.#engine
    this.#follow(this.#engine.accept(admitted, finding.at, simulated))
    if (this.#engine.refused > refused) this.#dispatch.mention(admitted, simulated)
  }

  #follow(transitions: readonly Transition[]): void {
    if (transitions.length === 0) return
    let isUrgent = false
    for (const { type, record } of transitions) {
      this.news.touch(record.fingerprint)
      if (type === 'forgotten') {
        this.#journal.delete(ALERT + record.fingerprint)
        this.#dispatch.forget(record)
        continue
      }
      if (type === 'resolved') this.#past.add(record)
      this.#keep(record)
      this.#dispatch.reconcile(record)
      isUrgent ||= record.finding.severity === 'critical' && type !== 'pending'
    }
    this.#commitSoon()
    if (isUrgent && this.#clock) this.#inBackground(this.#outbox.run())
  }

  /** Somebody took it on, or gave it back. */
  #taken(record: AlertRecord): AlertView {
    this.#keep(record)
    this.#dispatch.reconcile(record)
    this.news.touch(record.fingerprint)
    this.#commitSoon()
    return viewOf(record, this.#parts)
  }

  /** Only at a turn of events, not for every new number: the numbers come again. */
  #keep(record: AlertRecord): void {
    this.#journal.set(ALERT + record.fingerprint, record)
  }

  /** A fault in what nobody waits for is logged once, and does not end the agent. */
  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!this.#hasFailed) this.#options.log.error({ err: error }, 'the alerts failed at something; it is tried again')
      this.#hasFailed = true
    })
  }

  /** What was decided outlives a kill a moment later: nobody waits for the disk. */
  #writeDown(): void {
    if (this.#journal.isDirty) this.#journal.set('time', { engine: this.#engine.timeSnapshot(), delivery: this.#time.snapshot() })
    this.#journal.write()
  }

  #commitSoon(): void {
    this.#writeDown()
    this.#commitTimer ??= setTimeout(() => this.#inBackground(this.flush()), COMMIT_DELAY_MS)
  }

  #reconcileAll(): void {
    this.#lastReconcileMs = this.#time.ms
    for (const record of this.#engine.records()) if (record.phase === 'firing') this.#dispatch.reconcile(record)
    if (this.#journal.isDirty) this.#commitSoon()
    this.news.touchAll()
  }

  #watchSources(): void {
    const found: Finding[] = []
    this.#levels.sources(this.#options.state.health(), this.#options.now(), found)
    for (const finding of found) this.#take(finding)
  }

  #eventTime(): number {
    return this.#events.now(this.#options.now(), this.#time.ms)
  }

  #isSimulated({ subject, provenance }: Finding): boolean {
    const gpus = this.#options.state.gpus()
    const gpu = subject.gpu === null ? undefined : gpus.find((view) => view.info.id === subject.gpu)
    if (gpu) return gpu.info.provenance !== 'live'
    // Said again after a restart, before any GPU is known.
    if (provenance !== 'live') return true
    return gpus.length > 0 && gpus.every((view) => view.info.provenance !== 'live')
  }

  #heartbeatMs(): number {
    return this.#options.settings['alerts.heartbeat_minutes'] * 60_000
  }

  #restore(): void {
    const time = this.#journal.get('time') as { engine: ObservedTimeState; delivery: ObservedTimeState } | undefined
    const records = this.#journal.entries(ALERT).map(([, value]) => value as AlertRecord)
    if (time) this.#time.restore(time.delivery)
    this.#engine.restore({ time: time?.engine ?? { ms: 0, lastAt: null }, records })
  }
}
