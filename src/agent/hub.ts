/** Takes what sources and detectors report, keeps the state, and publishes to the sinks. */
import type { HubEvent, Log, Sink, SinkHealth, Tick } from '../core/kinds.ts'
import type {
  Finding,
  GpuEvent,
  GpuInfo,
  GpuSample,
  HostSample,
  ProcessView,
  Provenance,
  Run,
  RunSample,
  Sample,
  SourceHealth,
  TrainingStep,
} from '../core/model.ts'
import type { PlaybackState } from '../core/playback.ts'
import type { State } from './state.ts'

export interface SourceReport {
  readonly source: string
  readonly provenance: Provenance
  readonly at: number
  readonly samples: readonly Sample[]
}

export interface HubOptions {
  readonly state: State
  readonly log: Log
  /** Called whenever the set of processes on the GPUs changes. */
  readonly onProcesses: (pids: readonly number[]) => void
}

export class Hub {
  readonly #options: HubOptions
  readonly #sinks: { readonly sink: Sink; readonly skipsJumps: boolean; failures: number }[] = []
  readonly #pids = new Map<string, readonly number[]>()
  /** Sources that last played what was simulated when it was recorded. */
  readonly #simulated = new Set<string>()
  #watched = ''
  #seq = 0
  #isJumping = false
  #jumps = 0
  /** Of replay sources that were replaced. */
  #jumpsBefore = 0

  constructor(options: HubOptions) {
    this.#options = options
  }

  /** `skipsJumps`: is not shown the moments that a recording jumps over; who listens there asks for everything after a jump. */
  addSink(sink: Sink, { skipsJumps = false } = {}): void {
    this.#sinks.push({ sink, skipsJumps, failures: 0 })
  }

  sinkHealth(): readonly SinkHealth[] {
    return this.#sinks.map(({ sink, failures }) => {
      const { count, reason } = sink.dropped?.() ?? { count: 0, reason: null }
      return { name: sink.name, dropped: count + failures, reason }
    })
  }

  /** `standIns`: shown until the source lists real ones in their place. */
  receiveDevices(source: string, devices: readonly GpuInfo[], standIns: readonly GpuInfo[] = []): void {
    const { state } = this.#options
    const events = state.keepDevices(source, devices, standIns)
    this.#publish({ type: 'devices', devices: state.devices() })
    const first = events[0]
    if (first) this.receive({ source, provenance: devices[0]?.provenance ?? 'live', at: first.at, samples: events })
  }

  receiveHealth(health: readonly SourceHealth[]): void {
    this.#publish({ type: 'health', health })
  }

  receiveFinding(finding: Finding): void {
    this.#publish({ type: 'finding', finding })
  }

  receiveRun(run: Run): void {
    this.#publish({ type: 'run', run })
  }

  receiveSteps(steps: readonly TrainingStep[], provenance: Provenance = 'live'): void {
    if (steps.length > 0) this.#publish({ type: 'steps', steps, provenance })
  }

  receivePlayback(playback: PlaybackState): void {
    this.#isJumping = playback.state === 'seeking'
    this.#jumps = playback.jumps
    this.#publish({ type: 'playback', playback: { ...playback, jumps: this.#jumpsBefore + playback.jumps } })
  }

  /** What comes next is the beginning of the recording. `replaced`: nobody asked for it, and its count of jumps starts over. */
  restart(why: 'moved' | 'replaced'): void {
    this.#isJumping = true
    if (why === 'replaced') {
      this.#jumpsBefore += this.#jumps + 1
      this.#jumps = 0
    }
    this.#simulated.clear()
    this.#publish({ type: 'restart' })
  }

  /** One report of a source. A replay at full speed reports many moments at once: they are published one by one. */
  receive(report: SourceReport): void {
    const { samples, provenance } = report
    let from = 0
    for (let i = 1; i < samples.length; i++) {
      const [before, sample] = [samples[i - 1], samples[i]]
      if (!before || !sample || before.at === sample.at) continue
      if (sample.kind !== 'gpu' && sample.kind !== 'host' && provenance !== 'replay') continue
      this.#receiveMoment(report, before.at, samples.slice(from, i))
      from = i
    }
    const last = samples.at(-1)
    if (last) this.#receiveMoment(report, last.at, from === 0 ? samples : samples.slice(from))
  }

  async close(): Promise<void> {
    const closed = await Promise.allSettled(this.#sinks.map(({ sink }) => sink.close?.()))
    closed.forEach((result, index) => {
      if (result.status === 'rejected')
        this.#options.log.error({ err: result.reason, sink: this.#sinks[index]?.sink.name }, 'cannot close a sink')
    })
  }

  #receiveMoment(report: SourceReport, at: number, samples: readonly Sample[]): void {
    const { state } = this.#options
    const gpus: GpuSample[] = []
    const events: GpuEvent[] = []
    const steps: TrainingStep[] = []
    const runs: RunSample[] = []
    let host: HostSample | null = null
    for (const sample of samples) {
      if (sample.kind === 'gpu') {
        if (state.shows(sample.gpu)) gpus.push(sample)
      } else if (sample.kind === 'event') events.push(sample)
      else if (sample.kind === 'step') steps.push(sample)
      else if (sample.kind === 'run') runs.push(sample)
      else host = sample
    }
    const provenance = this.#provenanceOf(report, gpus[0])
    const isSimulation = report.provenance === 'simulated'
    // What a simulation tells of its runs happened before its GPUs were looked at.
    if (isSimulation) this.#receiveTraining(runs, steps, provenance)
    if (host) state.keepProcesses(host.processes, isSimulation)
    // It only says who the simulated processes are: host figures are those of the real host.
    if (isSimulation) host = null
    const isReading = gpus.length > 0
    if (isReading || events.some(({ event }) => event === 'lost')) state.addUnlisted(report.source, at, gpus)
    if (gpus.length > 0 || host || events.length > 0) {
      const processes: ProcessView[] = []
      for (const sample of gpus) state.join(sample, processes, isSimulation)
      const tick: Tick = { seq: ++this.#seq, at, source: report.source, provenance, gpus, processes, host, events }
      this.#publish({ type: 'tick', tick })
      // The PID of a simulated process belongs to somebody else here.
      if (isReading && !isSimulation) this.#follow(report.source, gpus)
    }
    if (!isSimulation) this.#receiveTraining(runs, steps, provenance)
  }

  /** A run begins before its first step, and ends after its last. */
  #receiveTraining(runs: readonly RunSample[], steps: readonly TrainingStep[], provenance: Provenance): void {
    for (const { run, about } of runs) if (run.endedAt === null) this.#publish({ type: 'run', run, about })
    this.receiveSteps(steps, provenance)
    for (const { run, about } of runs) if (run.endedAt !== null) this.#publish({ type: 'run', run, about })
  }

  /** Steps, events and host figures do not say whether they are simulated; the GPUs recorded with them do. */
  #provenanceOf({ source, provenance }: SourceReport, gpu: GpuSample | undefined): Provenance {
    if (provenance !== 'replay') return provenance
    if (gpu && this.#options.state.isSimulated(gpu.gpu)) this.#simulated.add(source)
    else if (gpu) this.#simulated.delete(source)
    return this.#simulated.has(source) ? 'simulated' : provenance
  }

  /** Passes the processes now on the GPUs to the host source, when they changed. */
  #follow(source: string, gpus: readonly GpuSample[]): void {
    const before = this.#pids.get(source)
    if (before && isSame(before, gpus)) return
    const own: number[] = []
    for (const { processes } of gpus) if (processes) for (const { pid } of processes) own.push(pid)
    this.#pids.set(source, own)
    const pids = [...new Set([...this.#pids.values()].flat())].sort((a, b) => a - b)
    const key = pids.join()
    if (key === this.#watched) return
    this.#watched = key
    this.#options.onProcesses(pids)
  }

  #publish(event: HubEvent): void {
    this.#options.state.accept(event)
    for (const entry of this.#sinks) {
      if (this.#isJumping && entry.skipsJumps && event.type !== 'playback') continue
      try {
        entry.sink.accept(event)
      } catch (error) {
        entry.failures++
        // Once: a sink that fails on every tick must not fill the log as well.
        if (entry.failures === 1)
          this.#options.log.error({ err: error, sink: entry.sink.name }, 'a sink failed; what it could not take is counted')
      }
    }
  }
}

/** Whether the processes on the GPUs are those of before, in the same order. */
function isSame(pids: readonly number[], gpus: readonly GpuSample[]): boolean {
  let at = 0
  for (const { processes } of gpus) if (processes) for (const { pid } of processes) if (pids[at++] !== pid) return false
  return at === pids.length
}
