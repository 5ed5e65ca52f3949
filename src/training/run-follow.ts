/** Follows a command from outside: which GPUs its processes use, what those GPUs do, what is found. Polls the agent. */
import type { AgentClient } from '../core/agent-client.ts'
import type { Finding, GpuInfo, GpuSample, ProcessView, Reading } from '../core/model.ts'
import { ProcessTree } from './process-tree.ts'

interface GpuRow {
  readonly info: GpuInfo
  readonly sample: GpuSample | null
  readonly live: boolean
}

export interface FollowedGpu {
  info: GpuInfo
  /** A process of the command was seen on it. */
  isOwn: boolean
  /** The most that processes of the command held together. */
  peakProcessBytes: Reading
}

export interface FollowOptions {
  readonly link: AgentClient
  readonly pid: number
  readonly everyMs: number
  /** Called once per new sample of a GPU. */
  readonly onSample: (sample: GpuSample) => void
  /** The set of GPUs that the command uses has grown. */
  readonly onGpus: (ids: readonly string[]) => void
}

const MOST_FINDINGS = 1000

export class RunFollower {
  readonly #options: FollowOptions
  readonly #tree: ProcessTree
  readonly gpus = new Map<string, FollowedGpu>()
  readonly findings = new Map<string, Finding>()
  readonly #lastAt = new Map<string, number>()
  #timer: NodeJS.Timeout | null = null
  #looking: Promise<void> | null = null
  #isStopped = false
  /** False: the driver's PIDs cannot be matched with ours (another PID namespace), so "not seen" means nothing. */
  processesAreKnown = false
  /** The machine has no GPU, so its agent shows simulated ones: none of them is the command's. */
  sawSimulated = false

  constructor(options: FollowOptions) {
    this.#options = options
    this.#tree = new ProcessTree(options.pid)
    this.#schedule(0)
  }

  /** One last look, then no more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer) clearTimeout(this.#timer)
    await this.#looking
    await this.#look()
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => {
        this.#looking = null
        if (!this.#isStopped) this.#schedule(this.#options.everyMs)
      })
    }, delayMs)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    const { link } = this.#options
    const pids = this.#tree.pids()
    const [gpus, processes, host] = await Promise.all([
      link.tryGet('/api/v1/gpus'),
      link.tryGet('/api/v1/processes'),
      link.tryGet('/api/v1/host'),
      this.takeFindings(),
    ])
    if (gpus.status === 200) for (const row of (gpus.body as { gpus: GpuRow[] }).gpus) this.#takeGpu(row)
    if (processes.status === 200) this.#takeProcesses((processes.body as { processes: ProcessView[] }).processes, pids)
    const sample = (host.body as { host?: { sample: { processesReason: string | null } } | null } | null)?.host?.sample
    if (host.status === 200 && sample) this.processesAreKnown = sample.processesReason === null
  }

  /** Those that are open now. */
  async takeFindings(): Promise<void> {
    const { status, body } = await this.#options.link.tryGet('/api/v1/findings')
    if (status === 200) for (const finding of (body as { findings: Finding[] }).findings) this.takeFinding(finding)
  }

  #takeGpu({ info, sample, live }: GpuRow): void {
    if (info.provenance === 'simulated') {
      this.sawSimulated = true
      return
    }
    const known = this.gpus.get(info.id)
    if (known) known.info = info
    else this.gpus.set(info.id, { info, isOwn: false, peakProcessBytes: null })
    if (!sample || !live || this.#lastAt.get(info.id) === sample.at) return
    this.#lastAt.set(info.id, sample.at)
    this.#options.onSample(sample)
  }

  #takeProcesses(processes: readonly ProcessView[], pids: ReadonlySet<number>): void {
    const held = new Map<string, number>()
    let hasGrown = false
    for (const { gpu: id, pid, memoryUsedBytes } of processes) {
      const gpu = this.gpus.get(id)
      if (!gpu || !pids.has(pid)) continue
      hasGrown ||= !gpu.isOwn
      gpu.isOwn = true
      if (memoryUsedBytes !== null) held.set(id, (held.get(id) ?? 0) + memoryUsedBytes)
    }
    for (const [id, bytes] of held) {
      const gpu = this.gpus.get(id)
      if (gpu) gpu.peakProcessBytes = Math.max(gpu.peakProcessBytes ?? 0, bytes)
    }
    if (hasGrown) this.#options.onGpus([...this.gpus.values()].filter(({ isOwn }) => isOwn).map(({ info }) => info.id))
  }

  takeFinding(finding: Finding): void {
    if (finding.provenance === 'simulated') return
    if (this.findings.has(finding.fingerprint) || this.findings.size < MOST_FINDINGS) this.findings.set(finding.fingerprint, finding)
  }
}
