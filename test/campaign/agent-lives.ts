/** The agent under attack: started, killed, started again on the same folder. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync, watch } from 'node:fs'
import { join } from 'node:path'
import { RunningAgent } from '../program.ts'
import type { Gate } from './gate.ts'
import type { Ledger, Life } from './ledger.ts'
import type { Aim } from './schedule.ts'

const AIM_LIMIT_MS = 6000
/** As systemd allows. */
const STOP_LIMIT_MS = 90_000

export interface AgentPlace {
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly logDir: string
}

export class AgentLives {
  readonly #place: AgentPlace
  readonly #ledger: Ledger
  readonly #gate: Gate
  /** Called once, with the next message that reaches a receiver. */
  onMessage: (() => void) | null = null
  samplerKills = 0
  /** The last words of an agent that ended by itself. */
  readonly lastWords: string[] = []
  #child: ChildProcess | null = null
  #life: Life | null = null
  #isOver = false
  #changing: Promise<void> = Promise.resolve()

  constructor(place: AgentPlace, ledger: Ledger, gate: Gate) {
    this.#place = place
    this.#ledger = ledger
    this.#gate = gate
  }

  get url(): string | null {
    return this.#gate.agentUrl
  }

  start(): Promise<void> {
    return this.#inTurn(() => this.#start())
  }

  /** Ends it with SIGKILL at the aimed moment, and starts it again after a while; the same for its sampler alone. */
  async kill(who: 'agent' | 'sampler' | 'both', aim: Aim, delayMs: number, downMs: number): Promise<void> {
    await this.#moment(aim)
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    const child = this.#child
    if (child?.pid === undefined) return
    if (who !== 'agent')
      for (const pid of childrenOf(child.pid)) {
        this.samplerKills++
        kill(pid)
      }
    if (who !== 'sampler') await this.#inTurn(() => this.#endAndStart(child, 'SIGKILL', downMs))
  }

  async restart(downMs: number): Promise<void> {
    const child = this.#child
    if (child) await this.#inTurn(() => this.#endAndStart(child, 'SIGTERM', downMs))
  }

  async stop(): Promise<void> {
    await this.#inTurn(async () => {
      this.#isOver = true
      if (this.#child) await this.#end(this.#child, 'SIGTERM')
    })
  }

  /** Without a word: the campaign itself is ended. */
  abandon(): void {
    this.#isOver = true
    this.#child?.kill('SIGKILL')
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#changing = this.#changing.then(work, work)
    return this.#changing
  }

  async #endAndStart(child: ChildProcess, signal: NodeJS.Signals, downMs: number): Promise<void> {
    // Somebody else ended it while this one waited.
    if (child !== this.#child) return
    await this.#end(child, signal)
    await new Promise((resolve) => setTimeout(resolve, downMs))
    await this.#start()
  }

  async #end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    this.#child = null
    const life = this.#life
    if (life) life.end = signal === 'SIGKILL' ? 'killed' : 'stopped'
    const over = new Promise<void>((resolve) =>
      child.exitCode !== null || child.signalCode !== null ? resolve() : child.once('exit', () => resolve()),
    )
    child.kill(signal)
    const limit = setTimeout(() => {
      if (life) life.end = 'crashed'
      this.lastWords.push(`did not end within ${STOP_LIMIT_MS / 1000} s of SIGTERM`)
      child.kill('SIGKILL')
    }, STOP_LIMIT_MS)
    await over
    clearTimeout(limit)
    this.#gate.agentUrl = null
    if (life) life.endedAt = Date.now()
    forgetClock(child.pid)
  }

  async #start(): Promise<void> {
    if (this.#isOver || this.#child) return
    const { args, env, logDir } = this.#place
    const life: Life = { startedAt: Date.now(), endedAt: Number.POSITIVE_INFINITY, end: null }
    this.#ledger.lives.push(life)
    this.#life = life
    try {
      const agent = await RunningAgent.start(args, env, logDir, (child) => {
        this.#child = child
        child.once('exit', (code, signal) => this.#endedByItself(child, life, `code ${code}, ${signal}`))
      })
      if (this.#child === agent.child) this.#gate.agentUrl = agent.url
      void agent.ended.then(({ stderr }) => {
        if (life.end === 'crashed') this.lastWords.push(stderr.slice(-2000))
      })
    } catch (error) {
      if (life.end === 'crashed') this.lastWords.push((error as Error).message.slice(-2000))
    }
  }

  #endedByItself(child: ChildProcess, life: Life, how: string): void {
    if (life.end !== null || this.#child !== child) return
    life.end = 'crashed'
    life.endedAt = Date.now()
    this.lastWords.push(how)
    this.#child = null
    this.#gate.agentUrl = null
    void this.start()
  }

  /** Resolves in the middle of a write, or while a message is on its way; after a while in any case. */
  #moment(aim: Aim): Promise<void> {
    if (aim === 'now') return Promise.resolve()
    const { logDir } = this.#place
    return new Promise((resolve) => {
      const limit = setTimeout(hit, AIM_LIMIT_MS)
      let stop: () => void = () => undefined
      function hit() {
        clearTimeout(limit)
        stop()
        resolve()
      }
      if (aim === 'message') {
        this.onMessage = hit
        return
      }
      try {
        const watcher = watch(join(logDir, aim === 'steps' ? 'runs' : 'alerts'), (_, name) => {
          if (/journal/.test(name ?? '')) hit()
        })
        watcher.on('error', hit)
        stop = () => watcher.close()
      } catch {
        // The folder is not there yet: any moment will do.
        hit()
      }
    })
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended in the meantime.
  }
}

/** What libfaketime leaves behind when its process is killed. */
function forgetClock(pid: number | undefined): void {
  for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`]) rmSync(join('/dev/shm', name), { force: true })
}
