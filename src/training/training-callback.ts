/** For training code in Node: tells the agent of every step, and never gets in the way of the training. */
import { hostname } from 'node:os'
import { AgentClient, type Answer, DEFAULT_URL, tokenFromEnvironment } from '../core/agent-client.ts'
import { keptHyperparameters } from '../core/hyperparameters.ts'
import { toJson } from '../core/json-text.ts'
import { startTicksOf } from '../core/process-identity.ts'
import { userName } from '../core/user-name.ts'
import { acknowledgedSteps, isAcknowledged, isRefusedByAgent, isStranger, notAcknowledged } from './acknowledgement.ts'
import { deliverLeftSpools } from './left-spools.ts'
import { newRunId } from './run-id.ts'
import type { Outcome } from './run-record.ts'
import { StepSpool, spoolFolder } from './step-spool.ts'

export interface TrainingMonitorCallbackOptions {
  /** Name of the run; GPUWARDEN_RUN_NAME, else the program's name. */
  readonly name?: string
  readonly runId?: string
  /** Address of the agent; GPUWARDEN_URL, else http://127.0.0.1:4780. */
  readonly url?: string
  readonly token?: string
  readonly rank?: number
  readonly worldSize?: number
  readonly gpus?: readonly (number | string)[]
  readonly framework?: string
  /** Settings of the training, kept with the run; nested ones as `outer.inner`, secrets masked. */
  readonly hyperparameters?: Readonly<Record<string, unknown>>
  /** How many steps the run will have: then gpuwarden can show the remaining time. */
  readonly totalSteps?: number
  /** Steps that may wait in memory; more go to the spool, and when that is full the oldest are dropped and counted. */
  readonly queueSize?: number
  /** Folder of the file where steps wait while no agent answers; GPUWARDEN_SPOOL, else ~/.cache/gpuwarden/spool. null: none. */
  readonly spool?: string | null
}

/** Numbers under other names are custom metrics. */
export interface StepFigures {
  readonly step: number
  readonly epoch?: number
  readonly loss?: number
  readonly lr?: number
  readonly gradNorm?: number
  readonly throughput?: number
  readonly phases?: Readonly<Record<string, number>>
  readonly [custom: string]: number | Readonly<Record<string, number>> | undefined
}

const SEND_EVERY_MS = 1000
const BATCH_LINES = 1000
const END_LIMIT_MS = 1000
const LONGEST_PAUSE_MS = 15_000
const LEFT_SPOOLS_EVERY_MS = 300_000
/** How the last line of a spool begins. */
const END = '{"end"'

export class TrainingMonitorCallback {
  readonly runId: string
  readonly #link: AgentClient
  readonly #run: Readonly<Record<string, unknown>>
  readonly #rank: number
  readonly #worldSize: number | null
  readonly #most: number
  readonly #spoolFolder: string | null
  readonly #spool: StepSpool
  readonly #atExit = () => this.#keepAll()
  #queue: string[] = []
  #sent: readonly string[] = []
  #spoolIsFull = false
  #leftSpoolsAt = 0
  #seq = 0
  /** In a container every process is PID 1: a resumed run is told apart by this. */
  readonly #session = newRunId()
  #stepBegan: number | null = null
  #timer: NodeJS.Timeout | null = null
  #sending: Promise<void> | null = null
  #isAnnounced = false
  #isEnded = false
  #hasMetStranger = false
  #pauseUntil = 0
  #pauseMs = 0
  /** Steps that were lost because neither an agent nor the disk took them, or that the agent refused. */
  dropped = 0
  delivered = 0
  /** Steps that had to wait in the spool. */
  spooled = 0
  /** Why the last delivery failed; null when it did not. */
  lastProblem: string | null = null

  constructor(options: TrainingMonitorCallbackOptions = {}) {
    const { env } = process
    this.runId = options.runId ?? (env.GPUWARDEN_RUN_ID || newRunId())
    this.#rank = options.rank ?? wholeOf(env.RANK) ?? wholeOf(env.SLURM_PROCID) ?? 0
    this.#worldSize = options.worldSize ?? wholeOf(env.WORLD_SIZE) ?? wholeOf(env.SLURM_NTASKS)
    this.#most = Math.max(1, options.queueSize ?? 10_000)
    this.#link = new AgentClient({
      url: options.url ?? (env.GPUWARDEN_URL || DEFAULT_URL),
      token: options.token ?? tokenFromEnvironment(env),
    })
    this.#spoolFolder = options.spool === undefined ? spoolFolder(env) : options.spool
    this.#run = {
      id: this.runId,
      name: options.name ?? (env.GPUWARDEN_RUN_NAME || process.argv[1]?.split('/').at(-1) || 'node'),
      host: hostname(),
      user: userName(),
      pid: process.pid,
      command: process.argv.join(' '),
      framework: options.framework ?? 'node',
      ...(this.#worldSize === null ? {} : { world_size: this.#worldSize }),
      ...(options.totalSteps === undefined ? {} : { total_steps: options.totalSteps }),
      ...(options.hyperparameters ? { hyperparameters: keptHyperparameters(options.hyperparameters) } : {}),
      ...(options.gpus ? { gpus: options.gpus } : {}),
      ...(env.GPUWARDEN_CORRELATION_ID ? { correlation_id: env.GPUWARDEN_CORRELATION_ID } : {}),
      started_at: Date.now(),
    }
    const head = { run: this.#run, url: this.#link.url, format: 1, process: { pid: process.pid, start: startTicksOf(process.pid) ?? 0 } }
    this.#spool = new StepSpool(this.#spoolFolder, `${this.runId}.rank${this.#rank}.${process.pid}`, head)
  }

  onTrainBegin(): void {
    if (this.#timer === null) process.on('exit', this.#atExit)
    this.#timer ??= setInterval(() => void this.flush(), SEND_EVERY_MS).unref()
    void this.flush()
  }

  onStepBegin(): void {
    this.#stepBegan = performance.now()
  }

  onStepEnd({ step, epoch, loss, lr, gradNorm, throughput, phases, ...rest }: StepFigures): void {
    if (this.#timer === null) this.onTrainBegin()
    const custom = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value === 'number'))
    const line = {
      seq: ++this.#seq,
      rank: this.#rank,
      step,
      t: Date.now(),
      epoch,
      loss,
      lr,
      grad_norm: gradNorm,
      throughput,
      step_seconds: this.#stepBegan === null ? undefined : (performance.now() - this.#stepBegan) / 1000,
      phases,
      custom: Object.keys(custom).length === 0 ? undefined : custom,
      world_size: this.#worldSize ?? undefined,
      pid: process.pid,
      session: this.#session,
    }
    this.#stepBegan = null
    this.#queue.push(toJson(line))
    if (this.#queue.length <= this.#most) return
    if (!this.#spoolIsFull) this.#keep()
    if (this.#queue.length > this.#most) {
      this.#queue.shift()
      this.dropped++
    }
  }

  /** Takes a second at most. What could not be sent by then is kept in the spool, and sent later as long as this process lives. */
  async onTrainEnd(outcome: Outcome = 'success', message?: string): Promise<void> {
    const end = { outcome, ended_at: Date.now(), rank: this.#rank, ...(message === undefined ? {} : { message }) }
    this.#isEnded = true
    this.#pauseUntil = 0
    const limit = new Promise<boolean>((resolve) => setTimeout(resolve, END_LIMIT_MS, false).unref())
    const isTold = await Promise.race([this.#finish(end), limit])
    process.off('exit', this.#atExit)
    if (!isTold) {
      this.#keepAll()
      const { reason } = this.#spool.append([toJson({ end })])
      this.lastProblem = reason ?? this.lastProblem
      this.dropped += this.#queue.length
      this.#queue = []
    }
    if (this.#spool.isEmpty) this.#stop()
  }

  /** Sends what waits; resolves after the attempt. */
  flush(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null
    })
    return this.#sending
  }

  /** Whether the agent has everything. */
  async #finish(end: object): Promise<boolean> {
    await this.#sending
    await this.flush()
    if (this.#queue.length > 0 || !this.#spool.isEmpty) return false
    const answer = await this.#link.tryPost(`/api/v1/runs/${this.runId}/end`, end, END_LIMIT_MS)
    return isAcknowledged(answer, this.runId)
  }

  #stop(): void {
    if (this.#timer) clearInterval(this.#timer)
    this.#timer = null
  }

  async #send(): Promise<void> {
    if (Date.now() < this.#pauseUntil || !(await this.#announce())) {
      this.#keep()
      return
    }
    if (!(await this.#sendSpool())) return
    while (this.#queue.length > 0) {
      this.#sent = this.#queue.splice(0, BATCH_LINES)
      if (!(await this.#deliver(this.#sent))) {
        this.#keepAll()
        return
      }
      this.#sent = []
    }
    if (Date.now() < this.#leftSpoolsAt || this.#isEnded) return
    this.#leftSpoolsAt = Date.now() + LEFT_SPOOLS_EVERY_MS
    await deliverLeftSpools(this.#spoolFolder, this.#link)
  }

  /** False: not all of it was accepted. */
  async #sendSpool(): Promise<boolean> {
    while (!this.#spool.isEmpty) {
      const { lines, next } = this.#spool.read(BATCH_LINES)
      if (lines.length === 0) break
      const steps = lines.filter((line) => !line.startsWith(END))
      if (steps.length > 0 && !(await this.#deliver(steps))) return false
      for (const line of lines.slice(steps.length)) {
        const answer = await this.#link.tryPost(`/api/v1/runs/${this.runId}/end`, (JSON.parse(line) as { end: unknown }).end)
        if (isAcknowledged(answer, this.runId)) continue
        this.#failed(answer)
        return false
      }
      this.#spool.advance(next)
    }
    this.#spoolIsFull = false
    if (this.#isEnded) this.#stop()
    return true
  }

  /** False: later. A permanent refusal is final. */
  async #deliver(batch: readonly string[]): Promise<boolean> {
    const path = `/api/v1/runs/${this.runId}/steps`
    let answer = await this.#link.tryPostLines(path, batch)
    if (answer.status === 404 && answer.code === 'unknown_run') {
      this.#isAnnounced = false
      if (!(await this.#announce())) return false
      answer = await this.#link.tryPostLines(path, batch)
    }
    const outcome = acknowledgedSteps(answer, this.runId, batch.length)
    const isRefused = isRefusedByAgent(answer)
    if (outcome === null && !isRefused) {
      this.#failed(answer)
      return false
    }
    const rejected = outcome?.rejected_count ?? batch.length
    this.delivered += batch.length - rejected
    this.dropped += rejected
    this.#pauseMs = 0
    this.lastProblem = isRefused ? answer.message : null
    return true
  }

  /** Also what is on its way, which may not have arrived: sending it twice does no harm. */
  #keepAll(): void {
    this.#queue.unshift(...this.#sent)
    this.#sent = []
    this.#keep()
  }

  /** To the disk, as far as there is room; the rest stays in memory. */
  #keep(): void {
    if (this.#queue.length === 0) return
    const { kept, reason } = this.#spool.append(this.#queue)
    this.#queue.splice(0, kept)
    this.spooled += kept
    this.#spoolIsFull = reason !== null
  }

  async #announce(): Promise<boolean> {
    if (this.#isAnnounced) return true
    const answer = await this.#link.tryPost('/api/v1/runs', this.#run)
    this.#isAnnounced = isAcknowledged(answer, this.runId)
    if (!this.#isAnnounced) this.#failed(answer)
    return this.#isAnnounced
  }

  #failed(answer: Answer): void {
    this.lastProblem = notAcknowledged(answer, this.#link.url)
    if (isStranger(answer) && !this.#hasMetStranger) {
      this.#hasMetStranger = true
      process.emitWarning(`${this.lastProblem}; steps are kept in ${this.#spool.path ?? 'memory'}`, 'GpuwardenWarning')
    }
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(SEND_EVERY_MS, this.#pauseMs * 2))
    this.#pauseUntil = Date.now() + this.#pauseMs
  }
}

function wholeOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null
}
