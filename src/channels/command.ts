/** The user's own program: never through a shell, with the message as JSON on its standard input. */
import { type ChildProcess, spawn } from 'node:child_process'
import { z } from 'zod'
import type { Delivery } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { payloadOf } from './payload.ts'
import { oneLine } from './plain-text.ts'
import { type Redact, redactor } from './secrets.ts'

const MOST_OUTPUT_CHARACTERS = 2000
/** Exit codes that no retry changes (sysexits.h, shells): usage, bad data, no permission, bad configuration, cannot run, not found. */
const HOPELESS = new Set([64, 65, 77, 78, 126, 127])
const PASSED_ON = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']

const schema = z.strictObject({
  /** The program and its arguments; nothing in them is expanded. */
  command: z
    .array(z.string())
    .min(1, 'expected the program and its arguments as a list')
    .refine((list) => list[0] !== '', 'expected the name of a program first'),
  timeout_seconds: z.number().positive().max(600).default(30),
})

export const command = channelKind({
  name: 'command',
  schema,
  create(name, { command: [program = '', ...args], timeout_seconds }, { env, timeoutMs }) {
    const redact = redactor(args.filter((argument) => argument.length >= 8))
    const environment = Object.fromEntries(PASSED_ON.flatMap((key) => (env[key] === undefined ? [] : [[key, env[key]]])))
    const limitMs = timeoutMs ?? timeout_seconds * 1000
    return {
      name,
      deliver(message, signal) {
        const child = spawn(program, args, { shell: false, detached: true, cwd: '/', env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
        return outcomeOf(child, { program, input: `${JSON.stringify(payloadOf(message))}\n`, signal, limitMs, redact })
      },
    }
  },
})

interface Watch {
  readonly program: string
  readonly input: string
  readonly signal: AbortSignal
  readonly limitMs: number
  readonly redact: Redact
}

function outcomeOf(child: ChildProcess, { program, input, signal, limitMs, redact }: Watch): Promise<Delivery> {
  return new Promise((resolve) => {
    let output = ''
    let stopped: string | null = null
    const take = (chunk: Buffer) => {
      if (output.length < MOST_OUTPUT_CHARACTERS) output += chunk.toString()
    }
    const stop = (reason: string) => {
      stopped ??= reason
      killGroup(child)
    }
    const onAbort = () => stop('canceled')
    const timer = setTimeout(() => stop(`it did not finish within ${limitMs / 1000} s`), limitMs)
    const finish = (delivery: Delivery) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      child.stdout?.destroy()
      child.stderr?.destroy()
      resolve(delivery)
    }
    child.stdout?.on('data', take)
    child.stderr?.on('data', take)
    child.on('error', (error: NodeJS.ErrnoException) =>
      finish({
        ok: false,
        retry: error.code === 'EAGAIN' || error.code === 'ENOMEM',
        reason: oneLine(redact(`${program} could not be started: ${error.message}`)),
      }),
    )
    child.on('exit', (code, killedBy) => {
      // What was written just before the end may still be in the pipe.
      setImmediate(() => finish(judge(program, code, killedBy, stopped, oneLine(redact(output)))))
    })
    // A program need not read its input.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
}

function judge(program: string, code: number | null, killedBy: string | null, stopped: string | null, output: string): Delivery {
  const said = output === '' ? '' : `: ${output}`
  if (stopped !== null) return { ok: false, retry: true, reason: `${program} was stopped: ${stopped}${said}` }
  if (code === 0) return { ok: true, answer: `${program} exited with status 0${said}` }
  if (code === null) return { ok: false, retry: true, reason: `${program} was killed by ${killedBy}${said}` }
  return { ok: false, retry: !HOPELESS.has(code), reason: `${program} exited with status ${code}${said}` }
}

/** The program and everything it started: it leads its own process group. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
