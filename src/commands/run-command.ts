/** Starts the command of `gpuwarden run`: its terminal untouched, its signals passed on. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it could not be started at all. */
  readonly fault: string | null
  readonly at: number
}

export interface StartedCommand {
  readonly pid: number | null
  readonly ended: Promise<Ending>
}

const FORWARDED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGINT', 'SIGQUIT']
/** Keys of a terminal send these to everybody in front of it, so the command has them already. */
const FROM_KEYBOARD: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT'])
/** As shells have it. */
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126
const REST_OF_OUTPUT_MS = 1000

/** With `onOutput` standard output and error pass through us, and are no terminal for the command. */
export function startCommand(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  onOutput: ((stream: string, text: string) => void) | null,
): StartedCommand {
  let child: ChildProcess | null = null
  // Before the command is there: a signal that comes with its first breath must reach it, not end us.
  const isTerminal = process.stdin.isTTY === true || process.stdout.isTTY === true || process.stderr.isTTY === true
  const handlers = FORWARDED.map((signal) => {
    const handle = () => {
      if (!(isTerminal && FROM_KEYBOARD.has(signal))) child?.kill(signal)
    }
    process.on(signal, handle)
    return { signal, handle }
  })
  const started = spawn(program, args, {
    stdio: onOutput ? ['inherit', 'pipe', 'pipe'] : 'inherit',
    // What is printed to a pipe would otherwise come out in blocks, minutes late.
    env: { ...process.env, ...env, ...(onOutput ? { PYTHONUNBUFFERED: process.env.PYTHONUNBUFFERED ?? '1' } : {}) },
  })
  if (onOutput) {
    tee(started.stdout, process.stdout, (text) => onOutput('stdout', text))
    tee(started.stderr, process.stderr, (text) => onOutput('stderr', text))
  }
  child = started
  const ended = new Promise<Ending>((resolve) => {
    const settle = (ending: Ending) => {
      // The default would end us before the summary: from here on a second Ctrl-C may.
      for (const { signal, handle } of handlers) process.off(signal, handle)
      resolve(ending)
    }
    started.once('error', (error: NodeJS.ErrnoException) => {
      if (started.pid !== undefined) return
      const code = error.code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE
      settle({ code, signal: null, fault: error.code === 'ENOENT' ? 'command not found' : error.message, at: Date.now() })
    })
    started.once('exit', (code, signal) => {
      const ending = { code, signal, fault: null, at: Date.now() }
      if (!onOutput) settle(ending)
      // What is still in the pipes; something in the background may hold them open forever.
      else Promise.race([once(started, 'close'), setTimeout(REST_OF_OUTPUT_MS)]).then(() => settle(ending))
    })
  })
  return { pid: started.pid ?? null, ended }
}

function tee(from: Readable | null, to: NodeJS.WriteStream, onText: (text: string) => void): void {
  if (!from) return
  const decoder = new TextDecoder()
  // Whoever read our output has gone: the command is to notice as it would without us.
  to.on('error', () => from.destroy())
  from.on('data', (chunk: Buffer) => {
    if (!to.write(chunk)) {
      from.pause()
      to.once('drain', () => from.resume())
    }
    onText(decoder.decode(chunk, { stream: true }))
  })
}
