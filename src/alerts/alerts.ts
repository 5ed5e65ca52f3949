/** The alert engine as the agent uses it: takes findings, keeps what must not be lost, and lets the couriers deliver. */
import type { AlertView, Delivery, Letter, PastAlert } from '../core/alert-contract.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { Dropped, HubEvent } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import type { PlaybackState } from '../core/playback.ts'
import { AlertChanges, keptAlerts } from './alert-changes.ts'
import { ChangeWatch } from './alert-news.ts'
import { type AlertRecord, isSimulated } from './alert-record.ts'
import { healthOf, type Parts, viewOf } from './alert-view.ts'
import type { Alerts, AlertsHealth, AlertsOptions, Edition } from './alerts-api.ts'
import { Commits, keptTimes } from './commits.ts'
import { Dispatch } from './dispatch.ts'
import { AlertEngine, type Transition } from './engine.ts'
import { type Heartbeat, heartbeatOf } from './heartbeat.ts'
import { Journal } from './journal.ts'
import { joinJournal } from './late-journal.ts'
import { Editions } from './letters.ts'
import type { Matcher } from './matcher.ts'
import { EventTime, ObservedTime } from './observed-time.ts'
import { Outbox } from './outbox.ts'
import { PastAlerts, type PastRange } from './past-alerts.ts'
import { checkRoutes } from './routes.ts'
import { Rules } from './rules.ts'
import { SeenSinceStart } from './seen-since-start.ts'
import { dispatchSettings, ruleSettings } from './settings.ts'
import { type Silence, Silences } from './silences.ts'
import { StepCourses } from './step-courses.ts'
import { SweepClock } from './sweep-clock.ts'
import { sendTest } from './test-message.ts'
import { endingsOf, RESTART_GRACE_MS } from './unconfirmed.ts'

const SLOW_SWEEP_MS = 5000
/** After a start: within this time the steps of a killed agent are judged again. */
const RECOVERY_MS = 300_000

/** Throws a Failure when a route names a channel that does not exist. */
export function createAlerts(options: AlertsOptions): Alerts {
  checkRoutes(options.settings['alerts.routes'], new Set([...options.channels.keys(), ...(options.unusableChannels ?? [])]))
  return new AlertRoom(options)
}

class AlertRoom implements Alerts {
  readonly name = 'alerts'
  readonly news: ChangeWatch
  readonly #options: AlertsOptions
  readonly #journal: Journal
  readonly #commits: Commits
  readonly #rules: Rules
  readonly #engine: AlertEngine
  readonly #silences: Silences
  readonly #editions: Editions
  readonly #past: PastAlerts
  readonly #outbox: Outbox
  readonly #dispatch: Dispatch
  readonly #changes: AlertChanges
  readonly #courses = new StepCourses()
  /** null: every alert from before the restart is confirmed or over. */
  #seen: SeenSinceStart | null = new SeenSinceStart()
  readonly #heartbeat: Heartbeat | null
  /** For deliveries: by the clock of this machine. The engine's time follows the events. */
  readonly #time = new ObservedTime()
  readonly #events = new EventTime()
  readonly #closing = new AbortController()
  #clock: SweepClock | null = null
  #lastTickMs: number | null = null
  #lastSlowSweepMs = Number.NEGATIVE_INFINITY
  #lastReconcileMs = Number.NEGATIVE_INFINITY
  readonly #startedMs: number
  readonly #parts: Parts
  #hasFailed = false
  #closed: Promise<void> | null = null

  constructor(options: AlertsOptions) {
    this.#options = options
    const { settings, state, log, now, dir, diskRetryMs } = options
    const retry = diskRetryMs === undefined ? {} : { retryMs: diskRetryMs }
    this.#journal = new Journal({ dir, log, now, ...retry, onFound: (entries) => this.#join(entries) })
    this.#rules = new Rules(ruleSettings(settings), options.detectors ?? [])
    this.#engine = new AlertEngine(this.#rules.patienceOf, options.limits)
    this.#commits = new Commits({
      journal: this.#journal,
      times: () => ({ engine: this.#engine.timeSnapshot(), delivery: this.#time.snapshot() }),
      inBackground: (work) => this.#inBackground(work),
    })
    this.#silences = new Silences(this.#journal, now)
    this.#editions = new Editions(this.#journal)
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
      runName: options.runName ?? (() => null),
      ...dispatchSettings(settings),
    })
    this.#heartbeat = heartbeatOf(settings, state.hostname, log)
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
    this.#changes = new AlertChanges({ ...this.#parts, past: this.#past, commits: this.#commits, news: this.news })
    const sweepMs = options.sweepMs ?? 1000
    if (sweepMs > 0) this.#clock = new SweepClock(sweepMs, () => this.#inBackground(this.sweep()))
    this.#inBackground(this.flush())
  }

  accept(event: HubEvent): void {
    if (this.#closed) return
    this.#seen?.accept(event, this.#time.ms)
    if (event.type === 'finding') this.#take(event.finding)
    else if (event.type === 'tick') {
      this.#lastTickMs = this.#time.advance(this.#options.now())
      this.#events.note(event.tick.at, this.#time.ms)
      this.#clock?.noteTick()
    } else if (event.type === 'steps') this.#courses.accept(event.steps)
    else if (event.type === 'run') this.#dispatch.noteRun(event.run)
    else if (event.type === 'health') this.#clock?.hurry()
    else if (event.type === 'playback') this.#played(event.playback)
    else if (event.type === 'restart') {
      this.#follow(this.#engine.forgetSimulated())
      this.#past.forgetSimulated()
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
    return silence
  }

  unsilence(id: string): boolean {
    const isGone = this.#silences.remove(id)
    this.#reconcileAll()
    return isGone
  }

  silences(): readonly Silence[] {
    return this.#silences.list()
  }

  acknowledge(fingerprint: string, until: number, by: string): AlertView | null {
    const record = this.#engine.get(fingerprint)
    if (!record || record.phase === 'resolved') return null
    const now = this.#options.now()
    if (!Number.isFinite(until) || until <= now) throw new Failure('an acknowledgement must end in the future', { exitCode: EXIT.usage })
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

  test(channel: string): Promise<Delivery> {
    return sendTest(channel, this.#options, this.#closing.signal)
  }

  channels(): readonly string[] {
    return [...this.#options.channels.keys()]
  }

  post(channel: string, edition: Edition, letters: readonly Letter[]): boolean {
    const queue = this.#outbox.queues.get(channel)
    // What was sent before may be in a file that cannot be read now.
    if (!queue || this.#options.dir === null || this.#journal.fault !== null) return false
    if (this.isPosted(edition)) return true
    this.#editions.note(edition)
    for (const letter of letters) queue.letters.add(letter)
    this.#commits.soon()
    return true
  }

  isPosted(edition: Edition): boolean {
    return this.#editions.isPosted(edition)
  }

  health(): AlertsHealth {
    return healthOf(this.#parts)
  }

  flush(): Promise<boolean> {
    return this.#commits.flush()
  }

  async sweep(): Promise<void> {
    if (this.#closed) return
    const ms = this.#time.advance(this.#options.now())
    this.#follow(this.#engine.advance(this.#eventTime()))
    if (ms - this.#lastSlowSweepMs >= SLOW_SWEEP_MS) {
      this.#lastSlowSweepMs = ms
      this.#silences.sweep()
      if (this.#journal.isDue) this.#inBackground(this.flush())
      const isGraceOver = ms - this.#startedMs >= RESTART_GRACE_MS
      const confirmation = { state: this.#options.state, at: this.#eventTime(), isGraceOver, isWatched: this.#rules.isWatched }
      for (const finding of endingsOf(this.#engine.records(), confirmation)) this.#follow(this.#engine.accept(finding, finding.at))
      this.#seen = this.#engine.hasUnconfirmed ? (this.#seen ?? new SeenSinceStart()) : null
    }
    if (ms - this.#lastReconcileMs >= SLOW_SWEEP_MS) this.#reconcileAll()
    const beatMs = this.#options.settings['alerts.heartbeat_minutes'] * 60_000
    const isWatching = this.#lastTickMs !== null && ms - this.#lastTickMs < Math.max(60_000, beatMs)
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
    this.#closing.abort(new Error('gpuwarden is stopping'))
    await this.#commits.close()
  }

  #take(finding: Finding): void {
    const admitted = this.#rules.admit(finding)
    if (!admitted) return
    this.#time.advance(this.#options.now())
    // Before the first sample detectors only repeat what was true when they were last saved; steps that a killed agent left come later.
    const isRepetition = this.#lastTickMs === null || (finding.subject.run !== null && this.#time.ms - this.#startedMs < RECOVERY_MS)
    if (isRepetition && finding.state === 'active' && this.#engine.isOldNews(finding)) return
    // A recording has its own time; live, a repeated old finding does not set the time back.
    if (finding.provenance === 'replay' || finding.at > this.#eventTime()) this.#events.note(finding.at, this.#time.ms)
    const simulated = isSimulated(finding, this.#options.state.gpus())
    const known = this.#engine.get(finding.fingerprint)
    const gone = this.#seen?.endOf(known, finding, this.#time.ms, this.#rules.findsAgainMs(finding))
    if (gone) this.#follow(this.#engine.endUnconfirmed(gone))
    const { refused } = this.#engine
    const isTurn = finding.state === 'resolved' || known?.clearMs != null
    this.#follow(this.#engine.accept(admitted, finding.at, simulated))
    // Kept at once: after a restart nobody would say again that it is over.
    const record = isTurn ? this.#engine.get(finding.fingerprint) : undefined
    if (record) this.#changes.note(record)
    if (this.#engine.refused > refused) this.#dispatch.mention(admitted, simulated)
  }

  #played({ state, at }: PlaybackState): void {
    this.#events.stand(state === 'paused' || state === 'ended', this.#time.advance(this.#options.now()))
    if (state === 'ended') this.#follow(this.#engine.settleSimulated(at ?? this.#eventTime()))
  }

  #follow(transitions: readonly Transition[]): void {
    const isUrgent = this.#changes.follow(transitions)
    if (isUrgent && this.#clock) this.#inBackground(this.#outbox.run())
  }

  /** Somebody acknowledged it, or removed the acknowledgement. */
  #taken(record: AlertRecord): AlertView {
    this.#dispatch.reconcile(record)
    this.#changes.note(record)
    return viewOf(record, this.#parts)
  }

  /** An error in background work is logged once, and does not end the agent. */
  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!this.#hasFailed) this.#options.log.error({ err: error }, 'the alerts failed; the agent will try again')
      this.#hasFailed = true
    })
  }

  #reconcileAll(): void {
    this.#lastReconcileMs = this.#time.ms
    for (const record of this.#engine.records()) if (record.phase === 'firing') this.#dispatch.reconcile(record)
    if (this.#journal.isDirty) this.#commits.soon()
    this.news.touchAll()
  }

  #join(entries: ReadonlyMap<string, unknown>): void {
    this.#editions.join(entries)
    const parts = { ...this.#parts, silences: this.#silences, past: this.#past }
    joinJournal(entries, { ...parts, deliveryMs: this.#time.ms, keep: (record) => this.#changes.keep(record) })
    this.#reconcileAll()
  }

  #eventTime(): number {
    return this.#events.now(this.#options.now(), this.#time.ms)
  }

  #restore(): void {
    const time = keptTimes(this.#journal)
    if (time) this.#time.restore(time.delivery)
    this.#engine.restore({ time: time?.engine ?? { ms: 0, lastAt: null }, records: keptAlerts(this.#journal) })
  }
}
