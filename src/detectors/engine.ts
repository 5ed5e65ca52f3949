/** Runs the detectors: feeds them what the hub publishes, keeps the active findings, and goes on without one that fails. */
import { BoundedMap } from '../core/bounded-map.ts'
import { type DetectorInput, type DetectorKind, MOST_RUNS } from '../core/detector-contract.ts'
import type { HubEvent, Tick } from '../core/kinds.ts'
import type { Finding, FindingSubject, GpuInfo, HostSample, ProcessView, Provenance, Reading, Run, SourceHealth } from '../core/model.ts'
import { RunNames } from '../core/run-names.ts'
import { type DetectorFailure, failureFinding } from './detector-failure.ts'
import { DetectorSet, type DetectorStates, type Unfollowed, unfollowedBy } from './detector-set.ts'
import { NO_FINDINGS, resolved } from './finding.ts'
import { ListedGpus } from './listed-gpus.ts'

export interface EngineOptions {
  readonly kinds: readonly DetectorKind[]
  /** By detector name; override its defaults. */
  readonly options?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly disabled?: readonly string[]
  /** How many runs are followed at once. */
  readonly maxRuns?: number
  readonly hostname: string
  /** Called once for each detector that fails. */
  readonly onFailure?: (failure: DetectorFailure) => void
}

export interface Engine {
  /** Takes what the hub publishes; returns new findings. */
  accept(event: HubEvent): readonly Finding[]
  /** A silent source sends no event, so its health has to be checked now and then. */
  lookAtSources(health: readonly SourceHealth[], at: number): readonly Finding[]
  findings(): readonly Finding[]
  failures(): readonly DetectorFailure[]
  unfollowed(): Unfollowed
  /** Whether it was shown this run as it is; null: it was never shown the run. */
  hasSeen(run: Run): boolean | null
  /** The time of the latest input; 0: there was none yet. */
  readonly lastAt: number
  /** JSON-safe. */
  snapshot(): unknown
  /** Before the first event. Returns the findings that end because nothing watches them anymore. */
  restore(state: unknown): readonly Finding[]
}

interface Saved {
  readonly version: 1
  readonly lastAt: number
  readonly detectors: DetectorStates
  /** Those of simulated inputs; absent where there were none. */
  readonly simulated?: DetectorStates
  readonly active: readonly Finding[]
  readonly runNames?: unknown
  readonly seenRuns?: unknown
}

const NO_PROCESSES: readonly ProcessView[] = Object.freeze([])

export function createEngine(given: EngineOptions): Engine {
  const disabled = new Set(given.disabled ?? [])
  const names = new Set(given.kinds.map((kind) => kind.name))
  for (const name of disabled)
    if (!names.has(name)) throw new Error(`detectors.disabled: there is no detector "${name}"; the detectors are ${[...names].join(', ')}`)
  return new DetectorEngine(
    given,
    given.kinds.filter((kind) => !disabled.has(kind.name)),
  )
}

class DetectorEngine implements Engine {
  readonly #given: EngineOptions
  readonly #kinds: readonly DetectorKind[]
  /** Of live and recorded inputs. */
  readonly #real: DetectorSet
  #simulated: DetectorSet | null = null
  /** Detectors whose findings stay when their GPU is no longer listed. */
  readonly #outliving: ReadonlySet<string>
  readonly #active = new Map<string, Finding>()
  readonly #devices = new ListedGpus()
  readonly #failures: DetectorFailure[] = []
  readonly #names = new RunNames()
  readonly #runProvenance: BoundedMap<string, Provenance>
  /** How each run was shown last. */
  readonly #seenRuns: BoundedMap<string, string>
  #lastAt = 0
  /** Of the input at hand. */
  #provenance: Provenance = 'live'

  constructor(given: EngineOptions, kinds: readonly DetectorKind[]) {
    this.#given = given
    this.#runProvenance = new BoundedMap(2 * (given.maxRuns ?? MOST_RUNS))
    this.#seenRuns = new BoundedMap(2 * (given.maxRuns ?? MOST_RUNS), { isRenewed: true })
    this.#kinds = kinds
    this.#real = new DetectorSet(kinds, given.options, given.maxRuns)
    this.#outliving = new Set(kinds.filter((kind) => kind.outlivesGpu).map((kind) => kind.name))
  }

  accept(event: HubEvent): readonly Finding[] {
    const out: Finding[] = []
    switch (event.type) {
      case 'tick':
        this.#tick(event.tick, out)
        break
      case 'steps':
        this.#provenance = event.provenance
        for (const step of event.steps) {
          this.#lastAt = Math.max(this.#lastAt, step.at)
          if (this.#runProvenance.get(step.run) !== event.provenance) this.#runProvenance.set(step.run, event.provenance)
          this.#show({ type: 'step', step }, out)
        }
        break
      case 'devices':
        this.#takeDevices(event.devices, out)
        break
      case 'run':
        this.#names.note(event.run)
        this.#provenance = event.run.provenance
        this.#runProvenance.set(event.run.id, event.run.provenance)
        this.#seenRuns.set(event.run.id, endOf(event.run))
        this.#show({ type: 'run', run: event.run }, out)
        break
      case 'health':
        for (const health of event.health) this.#showHealth(health, this.#timeOf(health), out)
        break
      default:
    }
    return out.length === 0 ? NO_FINDINGS : out
  }

  lookAtSources(health: readonly SourceHealth[], at: number): readonly Finding[] {
    const out: Finding[] = []
    // A recording has its own clock.
    for (const one of health) if (one.provenance !== 'replay') this.#showHealth(one, at, out)
    return out
  }

  findings(): readonly Finding[] {
    return [...this.#active.values()]
  }

  failures(): readonly DetectorFailure[] {
    return this.#failures
  }

  unfollowed(): Unfollowed {
    return unfollowedBy(this.#simulated ? [this.#real, this.#simulated] : [this.#real])
  }

  hasSeen(run: Run): boolean | null {
    const seen = this.#seenRuns.get(run.id)
    return seen === undefined ? null : seen === endOf(run)
  }

  get lastAt(): number {
    return this.#lastAt
  }

  snapshot(): unknown {
    return {
      version: 1,
      lastAt: this.#lastAt,
      detectors: this.#real.snapshot(),
      ...(this.#simulated ? { simulated: this.#simulated.snapshot() } : {}),
      active: [...this.#active.values()],
      runNames: this.#names.saved(),
      seenRuns: this.#seenRuns.saved(),
    } satisfies Saved
  }

  restore(state: unknown): readonly Finding[] {
    const saved = state as Saved | null
    if (saved?.version !== 1) throw new Error(`expected a saved detector state of version 1, got version ${String(saved?.version)}`)
    this.#lastAt = saved.lastAt
    if (saved.runNames) this.#names.load(saved.runNames)
    if (saved.seenRuns) this.#seenRuns.load(saved.seenRuns)
    const fail = (detector: string, error: unknown) => this.#fail({ detector, while: 'restoring', error })
    const real = this.#real.restore(saved.detectors, fail)
    const simulated = saved.simulated ? this.#setOf('simulated').restore(saved.simulated, fail) : new Set<string>()
    const ended: Finding[] = []
    for (const finding of saved.active) {
      // A failed detector gets another chance after a restart; one that lost its state starts again.
      if ((finding.provenance === 'simulated' ? simulated : real).has(finding.detector)) this.#active.set(finding.fingerprint, finding)
      else ended.push(resolved(finding, this.#lastAt, 'Not watched anymore since the restart.'))
    }
    return ended
  }

  #setOf(provenance: Provenance): DetectorSet {
    if (provenance !== 'simulated') return this.#real
    // Host figures are those of the real host: who judges nothing else has nothing to do here.
    this.#simulated ??= new DetectorSet(
      this.#kinds.filter(({ inputs }) => inputs.some((input) => input !== 'host')),
      this.#given.options,
      this.#given.maxRuns,
    )
    return this.#simulated
  }

  #showHealth(health: SourceHealth, at: number, out: Finding[]): void {
    this.#provenance = health.provenance
    this.#show({ type: 'health', health, at }, out)
  }

  #tick(tick: Tick, out: Finding[]): void {
    if (this.#devices.pass(tick.at - this.#lastAt)) this.#endUnlisted(out)
    this.#lastAt = tick.at
    this.#provenance = tick.provenance
    if (tick.host) this.#showHost(tick.host, out)
    for (const event of tick.events) this.#show({ type: 'event', event }, out)
    if (tick.gpus.length === 1 && tick.gpus[0]) this.#show({ type: 'gpu', sample: tick.gpus[0], processes: tick.processes }, out)
    else {
      const byGpu = new Map<string, ProcessView[]>()
      for (const process of tick.processes) {
        const list = byGpu.get(process.gpu)
        if (list) list.push(process)
        else byGpu.set(process.gpu, [process])
      }
      for (const sample of tick.gpus) this.#show({ type: 'gpu', sample, processes: byGpu.get(sample.gpu) ?? NO_PROCESSES }, out)
    }
  }

  /** The real host is also the clock of what is simulated. */
  #showHost(sample: HostSample, out: Finding[]): void {
    this.#show({ type: 'host', sample }, out)
    if (this.#provenance !== 'live' || this.#simulated === null) return
    this.#provenance = 'simulated'
    this.#show({ type: 'host', sample }, out)
    this.#provenance = 'live'
  }

  #takeDevices(devices: readonly GpuInfo[], out: Finding[]): void {
    this.#devices.replace(devices)
    for (const device of devices) {
      this.#provenance = device.provenance
      this.#show({ type: 'device', device }, out)
    }
    this.#endUnlisted(out)
  }

  #endUnlisted(out: Finding[]): void {
    for (const finding of [...this.#active.values()]) {
      const { gpu } = finding.subject
      if (gpu === null || !this.#devices.isGone(gpu, finding.provenance)) continue
      // A simulated GPU that is gone made room for real ones.
      if (this.#outliving.has(finding.detector) && finding.provenance !== 'simulated') continue
      this.#provenance = finding.provenance
      this.#note(resolved(finding, this.#lastAt, 'The GPU is no longer listed.'), out)
    }
  }

  #show(input: DetectorInput, out: Finding[]): void {
    this.#setOf(this.#provenance).show(
      input,
      (finding) => this.#note(finding, out),
      (detector, error) => this.#switchOff(detector, error, out),
    )
  }

  #note(finding: Finding, out: Finding[]): void {
    const placed = {
      ...finding,
      provenance: this.#provenanceOf(finding.subject),
      message: this.#named(finding),
      subject: this.#place(finding.subject),
    }
    if (placed.state === 'active') this.#active.set(placed.fingerprint, placed)
    else this.#active.delete(placed.fingerprint)
    out.push(placed)
    this.#show({ type: 'finding', finding: placed }, out)
  }

  #provenanceOf({ gpu, run }: FindingSubject): Provenance {
    const ofGpu = gpu === null ? undefined : this.#devices.get(gpu)?.provenance
    return ofGpu ?? (run === null ? undefined : this.#runProvenance.get(run)) ?? this.#provenance
  }

  /** Detectors need not know the host or a GPU's index. */
  #place(subject: FindingSubject): FindingSubject {
    const gpuIndex = subject.gpuIndex ?? (subject.gpu === null ? null : (this.#devices.get(subject.gpu)?.index ?? null))
    return { ...subject, host: subject.host ?? this.#given.hostname, gpuIndex }
  }

  /** Detectors know runs by id, people by name. */
  #named({ message, subject: { run } }: Finding): string {
    return run === null || !message.includes(run) ? message : message.replaceAll(run, this.#names.of(run))
  }

  #switchOff(name: string, error: unknown, out: Finding[]): void {
    this.#fail({ detector: name, while: 'running', error })
    const isSimulated = this.#provenance === 'simulated'
    for (const finding of [...this.#active.values()])
      if (finding.detector === name && (finding.provenance === 'simulated') === isSimulated)
        this.#note(resolved(finding, this.#lastAt, `Not watched anymore: the detector ${name} failed.`), out)
    this.#note(failureFinding(name, error, this.#given.hostname, this.#lastAt), out)
  }

  #fail(failure: DetectorFailure): void {
    this.#failures.push(failure)
    this.#given.onFailure?.(failure)
  }

  /** A stuck driver sends no ticks: then the times of its health are the newest. */
  #timeOf(health: SourceHealth): number {
    const candidates: Reading[] = [this.#lastAt, health.since, health.lastSampleAt]
    return Math.max(...candidates.map((at) => at ?? 0))
  }
}

function endOf({ endedAt, outcome }: Run): string {
  return `${endedAt} ${outcome}`
}
