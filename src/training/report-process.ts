/** Makes the report of a run in another process: it reads a day of logs, and the agent must not wait for that. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { setPriority, tmpdir } from 'node:os'
import { resolve as absolute, join } from 'node:path'
import { EXIT } from '../core/failure.ts'

export type ReportKind = 'html' | 'json'

/** `nothing`: the log holds nothing of it. `busy`: enough others wait. `late`: it took too long. `failed`: anything else. */
export type ReportOutcome =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly why: 'nothing' | 'busy' | 'late' | 'failed'; readonly message: string }

export interface ReportProgram {
  /** bin/gpuwarden.js */
  readonly program: string
  /** The agent's own configuration file. */
  readonly configFile: string | null
  readonly limitMs?: number
}

const LIMIT_MS = 60_000
const MOST_WAITING = 4
const MOST_BYTES = 64 * 1024 * 1024
/** Everything else on the machine comes first. */
const NICENESS = 10

export class ReportMaker {
  readonly #options: ReportProgram
  readonly #logDir: string
  readonly #abort = new AbortController()
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  constructor(options: ReportProgram, logDir: string) {
    this.#options = options
    // The program runs in another folder than the agent.
    this.#logDir = absolute(logDir)
  }

  /** One at a time. `run` null: of everything that is logged. */
  make(run: string | null, kind: ReportKind): Promise<ReportOutcome> {
    if (this.#waiting > MOST_WAITING) return Promise.resolve({ ok: false, why: 'busy', message: 'Other reports are in progress.' })
    this.#waiting++
    const made = this.#last.then(() => this.#make(run, kind))
    this.#last = made.then(
      () => this.#waiting--,
      () => this.#waiting--,
    )
    return made
  }

  /** Ends the report in progress. */
  async close(): Promise<void> {
    this.#abort.abort()
    await this.#last
  }

  async #make(run: string | null, kind: ReportKind): Promise<ReportOutcome> {
    // An empty folder to run in: there the name of a run cannot be taken for a file.
    const folder = await mkdtemp(join(tmpdir(), 'gpuwarden-report-'))
    try {
      const file = join(folder, '.report')
      const { configFile, program } = this.#options
      const asked = kind === 'html' ? [`--html=${file}`] : ['--json']
      const config = configFile === null ? [] : [`--config=${absolute(configFile)}`]
      const { fault, stdout } = await this.#run(
        [program, 'report', run ?? this.#logDir, `--log-dir=${this.#logDir}`, ...config, ...asked],
        folder,
      )
      if (fault) return fault
      return { ok: true, body: kind === 'html' ? await readFile(file) : stdout }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  #run(args: readonly string[], cwd: string): Promise<{ fault: ReportOutcome | null; stdout: Buffer }> {
    const timeout = this.#options.limitMs ?? LIMIT_MS
    return new Promise((resolve) => {
      const { signal } = this.#abort
      const options = { cwd, signal, timeout, killSignal: 'SIGKILL', maxBuffer: MOST_BYTES, encoding: 'buffer' } as const
      const child = execFile(process.execPath, args, options, (error, stdout, stderr) => {
        const message = stderr
          .toString()
          .replace(/^gpuwarden: /, '')
          .trim()
          .slice(0, 2000)
        if (!error) resolve({ fault: null, stdout })
        else if (error.killed) resolve({ fault: { ok: false, why: 'late', message: `It took longer than ${timeout / 1000} s.` }, stdout })
        else if (error.code === EXIT.noSource) resolve({ fault: { ok: false, why: 'nothing', message }, stdout })
        else resolve({ fault: { ok: false, why: 'failed', message: message || error.message }, stdout })
      })
      if (child.pid !== undefined) lowerPriority(child.pid)
    })
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, NICENESS)
  } catch {
    // It has already ended, or this system does not allow it: then it runs like any other process.
  }
}
