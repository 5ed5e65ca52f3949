/** What is known, from whichever side it comes, as data to draw. */
import type { StreamEvent } from '../core/kinds.ts'
import { forecastOf, isAboutGpu } from '../core/known/about-gpu.ts'
import { AgentClock } from '../core/known/agent-clock.ts'
import type { AlertsAnswer } from '../core/known/alerts.ts'
import { Known } from '../core/known/known.ts'
import type { Picture } from '../core/known/picture.ts'
import { allocatorBytes } from '../core/memory/fragmentation.ts'
import type { LedgerEntry, LedgerInput } from '../core/memory/ledger.ts'
import type { GpuInfo, GpuSample, SourceHealth } from '../core/model.ts'
import { RecentPast } from './recent-past.ts'
import type { AlertData, GpuData, ReplayData, ScreenData } from './screen-data.ts'
import { RunCourses, runsOn } from './training-runs.ts'

export interface LiveStateOptions {
  readonly now: () => number
  readonly devices: ReadonlySet<number> | null
  readonly intervalMs: number
  readonly ledger: (input: LedgerInput) => readonly LedgerEntry[] | null
}

const SHORTEST_STEP_MS = 1000

export class LiveState {
  hostname = ''
  origin = ''
  linkLost: ScreenData['linkLost'] = null
  replay: ReplayData | null = null
  overhead: ScreenData['overhead'] = null
  isReadonly = false
  /** When each silence ends, by its id. */
  silenceEnds: ReadonlyMap<string, number> = new Map()
  readonly past: RecentPast
  readonly #options: LiveStateOptions
  readonly #clock: AgentClock
  #known = new Known()
  #courses = new RunCourses()

  constructor(options: LiveStateOptions) {
    this.#options = options
    this.#clock = new AgentClock(options.now)
    this.past = new RecentPast(Math.max(SHORTEST_STEP_MS, options.intervalMs))
  }

  /** By the clock of the agent that is followed, where one is. */
  now(): number {
    return this.#clock.now()
  }

  accept(event: StreamEvent): void {
    if (!this.#known.isPlayback) this.#clock.hear(event)
    this.#known.accept(event, this.now())
    if (event.type === 'tick') this.past.accept(event.tick)
    else if (event.type === 'devices') this.past.keepOnly(event.devices)
    else if (event.type === 'steps') this.#courses.accept(event.steps, this.#known.runs)
  }

  /** What an agent knew before we came. */
  begin(picture: Picture): void {
    this.hostname = picture.hostname
    this.#clock.set(picture.at)
    this.#known.begin(picture, this.now())
    this.past.keepOnly(picture.gpus.map(({ info }) => info))
  }

  /** null: there are no alerts here. */
  takeAlerts(answer: AlertsAnswer | null): void {
    this.#known.alerts.answer(answer)
  }

  backfillLoss(run: string, losses: readonly number[]): void {
    this.#courses.backfill(run, losses)
  }

  setHealth(health: readonly SourceHealth[]): void {
    this.#known.health = health
  }

  get hasSample(): boolean {
    return this.#known.gpus(this.now()).some(({ sample }) => sample !== null)
  }

  resetHistory(): void {
    this.past.clear()
    this.#courses.clearHistory()
    this.#known.findings.forgetResolved()
  }

  /** Before a recording is read from its beginning again. */
  forget(): void {
    this.past.clear()
    this.#known = new Known()
    this.#courses = new RunCourses()
  }

  data(want: { readonly columns: number; readonly gpu: string | null }): ScreenData {
    const now = this.now()
    const known = this.#known
    known.isLinked = this.linkLost === null
    const at = this.replay?.at ?? known.present(now)
    const { devices, intervalMs } = this.#options
    const shown = known.gpus(now).filter(({ info }) => devices === null || devices.has(info.index))
    const ages = shown.flatMap(({ ageMs }) => ageMs ?? [])
    const findings = known.findings.list
    const deaths = [...findings, ...known.findings.resolved].filter(({ detector }) => detector === 'run_died')
    const host = known.host(now)
    // A recording is as it was, whether this program plays it or the agent: nothing of it grows old.
    const playback = known.isPlayback && known.isLinked ? known.playback : null
    const isLive = (live: boolean) => live || this.replay !== null || playback !== null
    return {
      now,
      at,
      hostname: this.hostname,
      origin: this.origin,
      provenance: this.replay && known.provenance === 'live' ? 'replay' : known.provenance,
      ageMs: ages.length === 0 ? null : Math.min(...ages),
      intervalMs: known.health.find((source) => source.source !== 'host')?.intervalMs ?? intervalMs,
      linkLost: this.linkLost,
      gpus: shown.map((view): GpuData => {
        const { info, sample } = view
        const { utilization, memory } = this.past.gpu(info.id)
        const isOnlyGpu = shown.length === 1
        return {
          view: { ...view, live: isLive(view.live) },
          utilization: utilization.tail(want.columns),
          memory: memory.tail(want.columns),
          phase: utilization.phase,
          stepMs: this.past.stepMs,
          deaths: deaths.flatMap(({ subject, since }) => (isAboutGpu(subject, info, known.runs.announced) ? [since] : [])),
          forecast: forecastOf(info, findings, known.runs.announced),
          ledger: sample && (want.gpu === info.id || isOnlyGpu) ? this.#ledger(info, sample, isOnlyGpu) : null,
        }
      }),
      processes: shown.flatMap(({ info }) => known.processesOf(info.id)),
      processMemory: (key) => this.past.process(key)?.tail(want.columns) ?? [],
      host: host && {
        sample: host.sample,
        live: isLive(host.live),
        cpu: this.past.hostCpu.tail(want.columns),
        memory: this.past.hostMemory.tail(want.columns),
      },
      health: known.health,
      findings,
      resolved: known.findings.resolved,
      alerts: this.#alerts(),
      runs: this.#courses.views(
        known.runs.values(),
        at,
        findings,
        shown.map(({ info }) => info),
      ),
      overhead: this.overhead,
      replay: this.replay,
      playback,
      isReadonly: this.isReadonly,
    }
  }

  #alerts(): readonly AlertData[] | null {
    const alerts = this.#known.alerts.list(this.#known.findings)
    return alerts?.map((alert) => ({ ...alert, silencedUntil: this.silenceEnds.get(alert.silence ?? '') ?? null })) ?? null
  }

  #ledger(info: GpuInfo, sample: GpuSample, isOnlyGpu: boolean): GpuData['ledger'] {
    return this.#options.ledger({
      isOfHost: info.unifiedMemory,
      freeBytes: sample.memoryFreeBytes,
      totalBytes: sample.memoryTotalBytes,
      usedBytes: sample.memoryUsedBytes,
      driverReservedBytes: sample.memoryReservedBytes,
      processes: sample.processes,
      allocators: runsOn(this.#known.runs, info, isOnlyGpu).map(({ run, step }) => ({ pid: run?.pid ?? null, ...allocatorBytes(step) })),
    })
  }
}
