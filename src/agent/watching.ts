/** The detectors in the agent: shows them what the hub publishes, and keeps what they have learned over a restart. */
import { renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DetectorKind } from '../core/detector-contract.ts'
import { DiskStuck, logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { KeptFile } from '../core/kept-file.ts'
import type { AgentState, HubEvent, Log, Sink } from '../core/kinds.ts'
import { makeFolderSync } from '../core/make-folder.ts'
import type { Finding, Run, TrainingStep } from '../core/model.ts'
import { readOwnFile } from '../core/system-file.ts'
import type { DetectorFailure } from '../detectors/detector-failure.ts'
import { createEngine, type Engine } from '../detectors/engine.ts'
import { detectors } from '../detectors/index.ts'
import { detectorOptions } from '../detectors/settings.ts'
import type { ConfigValues } from './config.ts'
import type { Hub } from './hub.ts'

export interface WatchingOptions {
  readonly values: ConfigValues
  /** null: nothing is kept. */
  readonly logDir: string | null
  readonly state: Pick<AgentState, 'hostname' | 'now' | 'health'>
  readonly hub: Hub
  readonly log: Log
  readonly kinds?: readonly DetectorKind[]
  readonly saveEveryMs?: number
  readonly firstSaveMs?: number
  readonly lookEveryMs?: number
}

export interface WatchingHealth {
  readonly state: 'ok' | 'degraded'
  readonly reason: string | null
  /** How many, by detector. */
  readonly runsNotFollowed: Readonly<Record<string, number>>
}

const SAVE_EVERY_MS = 60_000
/** The first save after the start; each later one waits twice as long. An agent that is killed again and again must not begin to learn again each time. */
const FIRST_SAVE_MS = 2000
/** A source that is silent says nothing: somebody has to look. Often enough for findings that take a minute. */
const LOOK_EVERY_MS = 15_000
/** After a finding began or ended: a kill must not make the detectors repeat what was over, or forget what was not. */
const SAVE_SOON_MS = 1000
/** A run that the detectors never saw, and that was over for longer than this when they were saved, is no news. */
const NEWS_MS = 3_600_000
/** Writing the state down stops everything else: it gets at most this share of the time. With 256 runs of 8 ranks it takes most of a second. */
const SAVING_SHARE = 0.01

/** A sink of the hub, added last: every sink sees a sample before the findings from it. */
export class Watching implements Sink {
  readonly name = 'detectors'
  readonly running: readonly DetectorKind[]
  readonly #options: WatchingOptions
  readonly #file: KeptFile | null
  readonly #timer: NodeJS.Timeout
  #saving: NodeJS.Timeout | null = null
  #engine: Engine
  #known: readonly Finding[] = []
  readonly #active = new Set<string>()
  readonly #judged = new WeakSet<TrainingStep>()
  #hasJudged = false
  #soon: NodeJS.Timeout | null = null
  /** An agent that never got to watch must not write over what another one keeps. */
  #isWatching = false
  #hasSaveFailed = false
  #restUntilMs = 0
  /** Not every run is followed. */
  #isShort = false

  constructor(options: WatchingOptions) {
    this.#options = options
    const { values, logDir, kinds = detectors } = options
    const disabled = new Set(values['detectors.disabled'])
    this.running = kinds.filter((kind) => !disabled.has(kind.name))
    checkNames(disabled, kinds)
    const file = stateFile(values.source, logDir)
    this.#file = file === null ? null : new KeptFile(file, { mode: 0o640, folderMode: 0o750, flush: true })
    this.#engine = this.#create()
    if (file !== null) this.#restore(file)
    this.#timer = setInterval(() => this.#look(), options.lookEveryMs ?? LOOK_EVERY_MS).unref()
  }

  /** Repeats what was active before the restart, and resolves what ended with it. Before the first sample. */
  resume(): void {
    this.#isWatching = true
    this.#saveAfter(this.#options.firstSaveMs ?? FIRST_SAVE_MS)
    for (const finding of this.#known) this.#tell(finding)
    this.#known = []
  }

  accept(event: HubEvent): void {
    if (event.type === 'restart') {
      this.#engine = this.#create()
      this.#active.clear()
    }
    const news =
      event.type === 'steps' && this.#hasJudged ? { ...event, steps: event.steps.filter((step) => !this.#judged.has(step)) } : event
    for (const finding of this.#engine.accept(news)) this.#tell(finding)
  }

  /** Steps that nobody else gets to see: they cannot be stored. */
  judge(steps: readonly TrainingStep[]): void {
    for (const finding of this.#engine.accept({ type: 'steps', steps, provenance: 'live' })) this.#tell(finding)
  }

  /** They come from the hub, too, now that they are stored. */
  skip(steps: readonly TrainingStep[]): void {
    this.#hasJudged = true
    for (const step of steps) this.#judged.add(step)
  }

  /** False: a change of this run was stored just before a kill, and nobody has judged it yet. */
  hasSeen(run: Run): boolean {
    const { values, state } = this.#options
    const hasSeen = this.#engine.hasSeen(run)
    if (hasSeen !== null || this.#file === null) return hasSeen ?? true
    // Real runs of earlier days are no part of a demonstration, nor simulated ones of anything else.
    if (values.source === 'demo' || run.provenance === 'simulated') return true
    // Either time may be from a clock that was wrong: the earlier one lets more through.
    const newsSince = Math.min(state.now(), this.#engine.lastAt || state.now()) - NEWS_MS
    return run.endedAt !== null && run.endedAt < newsSince
  }

  health(): WatchingHealth {
    const { runs, byDetector } = this.#engine.unfollowed()
    const reason =
      runs.length === 0
        ? null
        : `${runs.length} training ${runs.length === 1 ? 'run is' : 'runs are'} not followed by every detector: more than training.max_runs (${this.#options.values['training.max_runs']}) report at once`
    return { state: reason === null ? 'ok' : 'degraded', reason, runsNotFollowed: byDetector }
  }

  /** Whole or not at all, one write after the other. */
  async save(): Promise<void> {
    if (this.#file === null || !this.#isWatching) return
    const { log } = this.#options
    try {
      await this.#file.save(() => this.#text())
      this.#hasSaveFailed = false
    } catch (error) {
      if (!this.#hasSaveFailed) log.warn({ err: error, file: this.#file.path }, 'the state of the detectors cannot be saved')
      this.#hasSaveFailed = true
    }
  }

  #text(): string {
    const beginMs = performance.now()
    const text = JSON.stringify(this.#engine.snapshot())
    const endMs = performance.now()
    this.#restUntilMs = endMs + (endMs - beginMs) / SAVING_SHARE
    return text
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    if (this.#saving) clearTimeout(this.#saving)
    if (this.#soon) clearTimeout(this.#soon)
    try {
      await logLane.patiently(() => this.save(), STUCK_AT_END_MS)
    } catch (error) {
      if (!(error instanceof DiskStuck)) throw error
      this.#options.log.error({ err: error }, 'the latest state of the detectors could not be saved')
    }
  }

  #look(): void {
    this.#lookAtSources()
    const { reason } = this.health()
    if (reason !== null && !this.#isShort) this.#options.log.warn({}, `${reason}; raise it, or end runs that are not needed`)
    this.#isShort = reason !== null
  }

  #lookAtSources(): void {
    const { state } = this.#options
    if (this.#isWatching) for (const finding of this.#engine.lookAtSources(state.health(), state.now())) this.#tell(finding)
  }

  #tell(finding: Finding): void {
    const isNews = finding.state === 'resolved' ? this.#active.delete(finding.fingerprint) : !this.#active.has(finding.fingerprint)
    if (isNews && finding.state === 'active') this.#active.add(finding.fingerprint)
    this.#options.hub.receiveFinding(finding)
    if (isNews && this.#file !== null)
      this.#soon ??= setTimeout(() => this.#saveSoon(), Math.max(SAVE_SOON_MS, this.#restUntilMs - performance.now())).unref()
  }

  #saveAfter(delayMs: number): void {
    this.#saving = setTimeout(() => {
      if (performance.now() >= this.#restUntilMs) void this.save()
      this.#saveAfter(Math.min(2 * delayMs, this.#options.saveEveryMs ?? SAVE_EVERY_MS))
    }, delayMs).unref()
  }

  #saveSoon(): void {
    this.#soon = null
    void this.save()
  }

  #create(): Engine {
    const { values, state, kinds = detectors } = this.#options
    return createEngine({
      kinds,
      hostname: state.hostname,
      options: detectorOptions(values),
      disabled: values['detectors.disabled'],
      maxRuns: values['training.max_runs'],
      onFailure: (failure) => this.#report(failure),
    })
  }

  #report({ detector, error, while: moment }: DetectorFailure): void {
    const words = moment === 'running' ? 'a detector failed and is switched off' : 'a detector cannot use its saved state; it starts fresh'
    this.#options.log.error({ err: error, detector }, words)
  }

  #restore(file: string): void {
    let text: string
    try {
      text = readOwnFile(file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.#options.log.warn({ err: error, file }, 'the saved state of the detectors cannot be read; they start fresh')
      return
    }
    try {
      const ended = this.#engine.restore(JSON.parse(text))
      this.#known = [...ended, ...this.#engine.findings()]
    } catch (error) {
      // Part of it may have been loaded already.
      this.#engine = this.#create()
      this.#setAside(file, error)
    }
  }

  #setAside(file: string, error: unknown): void {
    const { log, state } = this.#options
    const aside = file.replace(/\.json$/, `-${new Date(state.now()).toISOString().replace(/[:.]/g, '')}.corrupt`)
    const message = 'the saved state of the detectors is damaged; it is set aside, and they start fresh'
    try {
      makeFolderSync(dirname(aside))
      renameSync(file, aside)
      log.error({ err: error, file: aside }, message)
    } catch (cause) {
      log.error({ err: error, file, reason: (cause as Error).message }, message)
    }
  }
}

/** Simulated GPUs have a file of their own, and a recording none: its time is not ours. */
function stateFile(source: string, logDir: string | null): string | null {
  if (logDir === null || source.startsWith('replay:')) return null
  return join(logDir, source === 'demo' ? 'detectors-demo.json' : 'detectors.json')
}

function checkNames(disabled: ReadonlySet<string>, kinds: readonly DetectorKind[]): void {
  const names = kinds.map((kind) => kind.name)
  const unknown = [...disabled].find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new Failure(`detectors.disabled: there is no detector "${unknown}"`, {
    exitCode: EXIT.usage,
    hint: `There are: ${names.join(', ')}.`,
  })
}
