/** Runs `gpuwarden doctor` as a child: the agent itself never touches hardware or native code. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Config } from './config.ts'

const BIN = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))
const LIMIT_MS = 30_000
const MOST_OUTPUT_BYTES = 1024 * 1024

export interface DoctorChildOptions {
  readonly config: Config
  /** Where the agent serves; null while it does not. */
  readonly port: () => number | null
  readonly signal: AbortSignal
  readonly limitMs?: number
  readonly program?: string
}

/** Gives what it printed; throws with the reason when it printed nothing in time. */
export function runDoctor({ config, port, signal, limitMs = LIMIT_MS, program = BIN }: DoctorChildOptions): Promise<string> {
  const args = [program, 'doctor', '--json', ...argumentsOf(config, port())]
  return new Promise((resolve, reject) => {
    // A group of its own: what it started to look at the drivers ends with it.
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    const output = { stdout: '', stderr: '' }
    let reason: string | null = null
    const end = (why: string) => {
      reason ??= why
      if (child.pid !== undefined) killGroup(child.pid)
    }
    const onAbort = () => end('the agent stops')
    const timer = setTimeout(() => end(`it was ended after ${limitMs / 1000} s`), limitMs)
    const settle = (fault: string | null) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      if (fault === null) resolve(output.stdout)
      else reject(new Error(fault))
    }
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
        if (output[name].length > MOST_OUTPUT_BYTES) end('it printed too much')
      })
    child.once('error', (error) => settle(`it cannot be started (${error.message})`))
    child.once('close', (code) => {
      const words = output.stderr.trim().split('\n')[0] ?? ''
      settle(reason ?? (output.stdout === '' ? `it ended with status ${code}: ${words}` : null))
    })
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
}

/** The configuration of the agent: its file, and what flags may have changed. Variables it has from us. */
function argumentsOf({ file, values }: Config, port: number | null): string[] {
  const host = values['server.host'].replace(/^\[|\]$/g, '')
  const flags = [`--log-dir=${values['log.dir']}`, `--host=${host}`, `--port=${port ?? values['server.port']}`]
  return [...flags, `--deadline=${values.deadline}`, ...(file === null ? [] : [`--config=${file}`])]
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
