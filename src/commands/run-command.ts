/** Starts the command of `gpuwarden run`: its terminal untouched, its signals passed on. */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

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

/** With `onOutput` standard output and error pass through us, and are no terminal for the command. */
export function startCommand(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  onOutput: ((stream: string, text: string) => void) | null,
): StartedCommand {
  const child = spawn(program, args, {
    stdio: onOutput ? ['inherit', 'pipe', 'pipe'] : 'inherit',
    // What is printed to a pipe would otherwise come out in blocks, minutes late.
    env: { ...process.env, ...env, ...(onOutput ? { PYTHONUNBUFFERED: process.env.PYTHONUNBUFFERED ?? '1' } : {}) },
  })
  if (onOutput) {
    tee(child.stdout, process.stdout, (text) => onOutput('stdout', text))
    tee(child.stderr, process.stderr, (text) => onOutput('stderr', text))
  }
  const isTerminal = process.stdin.isTTY === true || process.stdout.isTTY === true || process.stderr.isTTY === true
  const handlers = FORWARDED.map((signal) => {
    const handle = () => {
      if (!(isTerminal && FROM_KEYBOARD.has(signal))) child.kill(signal)
    }
    process.on(signal, handle)
    return { signal, handle }
  })
  const ended = new Promise<Ending>((resolve) => {
    const settle = (ending: Ending) => {
      // The default would end us before the summary: from here on a second Ctrl-C may.
      for (const { signal, handle } of handlers) process.off(signal, handle)
      resolve(ending)
    }
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return
      const code = error.code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE
      settle({ code, signal: null, fault: error.code === 'ENOENT' ? 'command not found' : error.message, at: Date.now() })
    })
    child.once(onOutput ? 'close' : 'exit', (code, signal) => settle({ code, signal, fault: null, at: Date.now() }))
  })
  return { pid: child.pid ?? null, ended }
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
