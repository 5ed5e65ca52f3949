/** The agent's end of the process that analyzes one snapshot. */
import { type ChildProcess, fork } from 'node:child_process'
import { setPriority } from 'node:os'
import type { FromAnalysis, Question, SnapshotFile, ToAnalysis } from './messages.ts'

export type AnalysisState =
  | { readonly kind: 'reading'; readonly share: number }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }

export type Answer = { readonly ok: true; readonly body: string } | { readonly ok: false; readonly reason: string }

export interface AnalysisProcessOptions {
  readonly entry: URL
  readonly file: SnapshotFile
  /** Without a sign of life for so long it is ended. */
  readonly silenceMs?: number
  readonly onEnd: () => void
}

const SILENCE_MS = 120_000
/** Everything else on the machine comes first. */
const NICENESS = 10

export class AnalysisProcess {
  state: AnalysisState = { kind: 'reading', share: 0 }
  usedAt = Date.now()
  readonly #child: ChildProcess
  readonly #open = new Map<number, (answer: Answer) => void>()
  readonly #silenceMs: number
  #watchdog: NodeJS.Timeout | undefined
  #nextId = 1

  constructor({ entry, file, silenceMs = SILENCE_MS, onEnd }: AnalysisProcessOptions) {
    this.#silenceMs = silenceMs
    this.#child = fork(entry, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: ['--v8-pool-size=1'],
    })
    this.#child.on('message', (message: FromAnalysis) => this.#hear(message))
    this.#child.on('error', (error) => this.#fail(`the analysis could not be started: ${error.message}`))
    this.#child.on('exit', (code, signal) => {
      this.#fail(`the analysis ended (${signal ?? `exit code ${code}`}): perhaps the machine had no memory left for it`)
      clearTimeout(this.#watchdog)
      onEnd()
    })
    lowerPriority(this.#child.pid)
    this.#watch()
    this.#send({ type: 'open', file })
  }

  get isBusy(): boolean {
    return this.#open.size > 0 || this.state.kind === 'reading'
  }

  /** A question may take as long as reading another file does. */
  ask(question: Question): Promise<Answer> {
    this.usedAt = Date.now()
    if (this.state.kind === 'failed') return Promise.resolve({ ok: false, reason: this.state.reason })
    const id = this.#nextId++
    return new Promise((resolve) => {
      this.#open.set(id, resolve)
      this.#watch()
      this.#send({ type: 'question', id, question })
    })
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }

  #hear(message: FromAnalysis): void {
    this.#watch()
    switch (message.type) {
      case 'progress':
        this.state = { kind: 'reading', share: message.share }
        break
      case 'opened':
        this.state = { kind: 'ready' }
        break
      case 'unreadable':
        this.#fail(message.reason)
        break
      case 'answer':
        this.#settle(message.id, { ok: true, body: message.body })
        break
      case 'refusal':
        this.#settle(message.id, { ok: false, reason: message.reason })
        break
    }
  }

  #settle(id: number, answer: Answer): void {
    this.usedAt = Date.now()
    this.#open.get(id)?.(answer)
    this.#open.delete(id)
    this.#watch()
  }

  #fail(reason: string): void {
    if (this.state.kind !== 'failed') this.state = { kind: 'failed', reason }
    for (const settle of this.#open.values()) settle({ ok: false, reason })
    this.#open.clear()
    // What it holds in memory is of no use anymore.
    this.#child.kill('SIGKILL')
  }

  #send(message: ToAnalysis): void {
    if (this.#child.connected) this.#child.send(message)
  }

  #watch(): void {
    clearTimeout(this.#watchdog)
    if (!this.isBusy) return
    const minutes = Math.round(this.#silenceMs / 60_000)
    this.#watchdog = setTimeout(() => this.#fail(`the analysis did not answer for ${minutes} minutes and was ended`), this.#silenceMs)
    this.#watchdog.unref()
  }
}

function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, NICENESS)
  } catch {
    // It has already ended, or this system does not allow it: then it runs like any other process.
  }
}
