/** For training code in Node: tells the agent of every step, and never gets in the way of the training. */
import { hostname, userInfo } from 'node:os'
import { AgentLink, DEFAULT_URL, tokenFromEnvironment } from './agent-link.ts'
import { toJson } from './json-text.ts'
import { newRunId } from './run-id.ts'
import type { Outcome } from './run-record.ts'

export interface TrainingMonitorCallbackOptions {
  /** What the run is called; GPUWARDEN_RUN_NAME, else the program's name. */
  readonly name?: string
  readonly runId?: string
  /** Where the agent is; GPUWARDEN_URL, else http://127.0.0.1:4780. */
  readonly url?: string
  readonly token?: string
  readonly rank?: number
  readonly worldSize?: number
  readonly gpus?: readonly (number | string)[]
  readonly framework?: string
  /** Steps that may wait while no agent answers; beyond it the oldest are dropped and counted. */
  readonly queueSize?: number
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
const LONGEST_PAUSE_MS = 30_000

export class TrainingMonitorCallback {
  readonly runId: string
  readonly #link: AgentLink
  readonly #run: Readonly<Record<string, unknown>>
  readonly #rank: number
  readonly #worldSize: number | null
  readonly #most: number
  #queue: string[] = []
  #seq = 0
  #stepBegan: number | null = null
  #timer: NodeJS.Timeout | null = null
  #sending: Promise<void> | null = null
  #isAnnounced = false
  #pauseUntil = 0
  #pauseMs = 0
  #overflowed = 0
  /** Steps that were lost because no agent answered for too long, or that it refused. */
  dropped = 0
  delivered = 0
  /** Why the last delivery failed; null when it did not. */
  lastProblem: string | null = null

  constructor(options: TrainingMonitorCallbackOptions = {}) {
    const { env } = process
    this.runId = options.runId ?? (env.GPUWARDEN_RUN_ID || newRunId())
    this.#rank = options.rank ?? wholeOf(env.RANK) ?? wholeOf(env.SLURM_PROCID) ?? 0
    this.#worldSize = options.worldSize ?? wholeOf(env.WORLD_SIZE) ?? wholeOf(env.SLURM_NTASKS)
    this.#most = Math.max(1, options.queueSize ?? 10_000)
    this.#link = new AgentLink(options.url ?? (env.GPUWARDEN_URL || DEFAULT_URL), options.token ?? tokenFromEnvironment(env))
    this.#run = {
      id: this.runId,
      name: options.name ?? (env.GPUWARDEN_RUN_NAME || process.argv[1]?.split('/').at(-1) || 'node'),
      host: hostname(),
      user: userName(),
      pid: process.pid,
      command: process.argv.join(' '),
      framework: options.framework ?? 'node',
      ...(this.#worldSize === null ? {} : { world_size: this.#worldSize }),
      ...(options.gpus ? { gpus: options.gpus } : {}),
      ...(env.GPUWARDEN_CORRELATION_ID ? { correlation_id: env.GPUWARDEN_CORRELATION_ID } : {}),
      started_at: Date.now(),
    }
  }

  onTrainBegin(): void {
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
    }
    this.#stepBegan = null
    this.#queue.push(toJson(line))
    if (this.#queue.length > this.#most) {
      this.#queue.shift()
      this.#overflowed++
      this.dropped++
    }
  }

  /** Takes a second at most. */
  async onTrainEnd(outcome: Outcome = 'success', message?: string): Promise<void> {
    if (this.#timer) clearInterval(this.#timer)
    this.#timer = null
    const endedAt = Date.now()
    this.#pauseUntil = 0
    await Promise.race([this.#finish(outcome, message, endedAt), new Promise((resolve) => setTimeout(resolve, END_LIMIT_MS).unref())])
  }

  /** Sends what waits; resolves when it was tried. */
  flush(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null
    })
    return this.#sending
  }

  async #finish(outcome: Outcome, message: string | undefined, endedAt: number): Promise<void> {
    await this.#sending
    await this.flush()
    const body = { outcome, ended_at: endedAt, rank: this.#rank, ...(message === undefined ? {} : { message }) }
    await this.#link.post(`/api/v1/runs/${this.runId}/end`, body, END_LIMIT_MS)
  }

  async #send(): Promise<void> {
    if (Date.now() < this.#pauseUntil || !(await this.#announce())) return
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, BATCH_LINES)
      const droppedBefore = this.#overflowed
      const answer = await this.#link.postLines(`/api/v1/runs/${this.runId}/steps`, batch)
      if (answer.status === 404 && answer.code === 'unknown_run') {
        this.#isAnnounced = false
        if (!(await this.#announce())) return
        continue
      }
      const isRefused = answer.status >= 400 && answer.status < 500 && answer.status !== 401 && answer.status !== 429
      if (answer.status !== 200 && !isRefused) {
        this.#failed(answer.message)
        return
      }
      // The queue may have lost its oldest while this was on the way.
      this.#queue.splice(0, Math.max(0, batch.length - (this.#overflowed - droppedBefore)))
      const rejected = isRefused ? batch.length : Number((answer.body as { rejected_count?: number } | null)?.rejected_count ?? 0)
      this.delivered += batch.length - rejected
      this.dropped += rejected
      this.#pauseMs = 0
      this.lastProblem = isRefused ? answer.message : null
    }
  }

  async #announce(): Promise<boolean> {
    if (this.#isAnnounced) return true
    const { status, message } = await this.#link.post('/api/v1/runs', this.#run)
    this.#isAnnounced = status === 200
    if (!this.#isAnnounced) this.#failed(message)
    return this.#isAnnounced
  }

  #failed(message: string): void {
    this.lastProblem = message
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(SEND_EVERY_MS, this.#pauseMs * 2))
    this.#pauseUntil = Date.now() + this.#pauseMs
  }
}

function wholeOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null
}

function userName(): string | null {
  try {
    return userInfo().username
  } catch {
    // A user without an entry in the password file, as in many containers.
    return null
  }
}
