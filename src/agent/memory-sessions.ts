/** Looks at memory for somebody who asks over HTTP: what the memory classes of the library see, of the agent's own samples. Bounded. */
import { randomBytes } from 'node:crypto'
import type { AgentState, GpuView, HubEvent, Sink } from '../core/kinds.ts'
import type { Finding, Reading, Run } from '../core/model.ts'
import { FragmentationBook } from '../report/fragmentation-report.ts'
import { fragmentationRecord, fragmentationText } from '../report/fragmentation-text.ts'
import { leakText } from '../report/leak-text.ts'
import { LeakVerdicts, leakRecord } from '../report/leak-verdicts.ts'
import { MemoryProfile } from '../report/memory-profile.ts'
import { OomAssessment } from '../report/oom-assessment.ts'
import { oomRecord } from '../report/oom-warning.ts'
import { profileHtml } from '../report/profile-html.ts'
import { profileText } from '../report/profile-text.ts'
import type { SamplingPace } from './sampling-pace.ts'

export const SESSION_MS = 15_000
const MOST_SESSIONS = 8
/** A minute at ten samples a second: whoever asks less often misses some. */
const MOST_RECENT = 600
const MEBIBYTE = 1024 ** 2

export interface SessionRequest {
  readonly devices: readonly number[] | null
  /** null: as the agent does. */
  readonly intervalMs: Reading
  readonly oomThresholdPercent: number
  readonly leakThresholdMegabytes: number
}

export interface MemorySessionsOptions {
  readonly state: AgentState
  readonly pace: SamplingPace
  readonly runs: () => readonly Run[]
}

export class MemorySessions implements Sink {
  readonly name = 'memory sessions'
  readonly #options: MemorySessionsOptions
  readonly #sessions = new Map<string, { readonly session: MemorySession; readonly intervalMs: Reading; timer: NodeJS.Timeout }>()

  constructor(options: MemorySessionsOptions) {
    this.#options = options
  }

  /** null: there are too many. */
  open(request: SessionRequest): string | null {
    if (this.#sessions.size >= MOST_SESSIONS) return null
    const id = randomBytes(12).toString('hex')
    const session = new MemorySession(request, this.#options.state)
    for (const run of this.#options.runs()) session.accept({ type: 'run', run })
    this.#sessions.set(id, { session, intervalMs: request.intervalMs, timer: setTimeout(() => undefined) })
    this.find(id)
    return id
  }

  /** Whoever asks for it keeps it. */
  find(id: string): MemorySession | null {
    const known = this.#sessions.get(id)
    if (!known) return null
    clearTimeout(known.timer)
    known.timer = setTimeout(() => this.end(id), SESSION_MS).unref()
    if (known.intervalMs !== null) this.#options.pace.ask(id, known.intervalMs, SESSION_MS)
    return known.session
  }

  end(id: string): boolean {
    clearTimeout(this.#sessions.get(id)?.timer)
    this.#options.pace.release(id)
    return this.#sessions.delete(id)
  }

  accept(event: HubEvent): void {
    for (const { session } of this.#sessions.values()) session.accept(event)
  }
}

export class MemorySession {
  readonly #request: SessionRequest
  readonly #state: AgentState
  readonly #profile = new MemoryProfile()
  readonly #oom: OomAssessment
  readonly #leaks: LeakVerdicts
  readonly #fragmentation: FragmentationBook
  /** By GPU: time, bytes in use, of the newest samples. */
  readonly #recent = new Map<string, [number, Reading][]>()
  #lastAt: Reading = null

  constructor(request: SessionRequest, state: AgentState) {
    this.#request = request
    this.#state = state
    const devices = request.devices === null ? null : new Set(request.devices)
    this.#oom = new OomAssessment({ thresholdPercent: request.oomThresholdPercent, devices })
    this.#leaks = new LeakVerdicts({ thresholdBytes: request.leakThresholdMegabytes * MEBIBYTE, devices })
    this.#fragmentation = new FragmentationBook(devices)
    this.accept({ type: 'devices', devices: state.gpus().map(({ info }) => info) })
    for (const finding of state.findings()) this.#acceptFinding(finding)
  }

  accept(event: HubEvent): void {
    if (event.type === 'finding') {
      this.#acceptFinding(event.finding)
      return
    }
    for (const one of [this.#profile, this.#oom, this.#leaks, this.#fragmentation]) one.accept(event)
    if (event.type !== 'tick' || event.tick.gpus.length === 0) return
    this.#lastAt = event.tick.at
    for (const { gpu, at, memoryUsedBytes } of event.tick.gpus) {
      const recent = this.#recent.get(gpu) ?? []
      recent.push([at, memoryUsedBytes])
      if (recent.length > MOST_RECENT) recent.shift()
      this.#recent.set(gpu, recent)
    }
  }

  /** As `MemoryDebugger` of the library, in the names of the commands; with the samples after `since`. */
  report(since: number) {
    const gpus = this.#gpus()
    const samples = gpus.map(({ info }) => {
      const recent = (this.#recent.get(info.id) ?? []).filter(([at]) => at > since)
      return [info.label, { at: recent.map(([at]) => at), used_bytes: recent.map(([, bytes]) => bytes) }] as const
    })
    return {
      ...this.#profileReport(gpus),
      oom: this.#oom.predictions().map(oomRecord),
      leaks: this.#leaks.verdicts().map(leakRecord),
      memory_ledger: fragmentationRecord(this.#fragmentation.figures()),
      samples: Object.fromEntries(samples),
    }
  }

  html(): string {
    const gpus = this.#gpus()
    return profileHtml(
      this.#profile,
      this.#profileReport(gpus),
      gpus.map(({ info }) => info),
    )
  }

  text(): string {
    const leaks = this.#leaks.verdicts().map(leakText)
    const memory = fragmentationText(this.#fragmentation.figures())
    return `${[profileText(this.#profileReport(this.#gpus())), ['Leaks:', ...leaks].join('\n'), memory].join('\n\n')}\n`
  }

  #profileReport(gpus: readonly GpuView[]) {
    const shown = new Set(gpus.map(({ info }) => info.id))
    const processes = this.#state.processes().filter(({ gpu }) => shown.has(gpu))
    return this.#profile.report(gpus, processes, this.#lastAt ?? this.#state.now())
  }

  #acceptFinding(finding: Finding): void {
    const { gpuIndex } = finding.subject
    if (this.#request.devices !== null && gpuIndex !== null && !this.#request.devices.includes(gpuIndex)) return
    for (const one of [this.#profile, this.#oom, this.#leaks]) one.acceptFinding(finding)
  }

  #gpus(): readonly GpuView[] {
    const { devices } = this.#request
    return this.#state.gpus().filter(({ info }) => devices === null || devices.includes(info.index))
  }
}
