/** Runs the real program, as a user would, and looks at it from outside. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

export const BIN = fileURLToPath(new URL('../bin/gpuwarden.js', import.meta.url))
export const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Nothing of the developer's own configuration reaches a test. */
function cleanEnv(extra: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG, NODE_V8_COVERAGE } = process.env
  return { PATH, HOME, LANG, NODE_V8_COVERAGE, XDG_CONFIG_HOME: '/nonexistent', ...extra }
}

/** Simulated GPUs are well unless the test says otherwise. */
function calm(args: readonly string[]): readonly string[] {
  const at = args.findIndex((arg, index) => arg === '--source' && args[index + 1] === 'demo')
  return at < 0 || args.includes('--demo-scenario') ? args : args.toSpliced(at + 2, 0, '--demo-scenario', 'healthy')
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'gpuwarden-test-'))
}

export async function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn(process.execPath, [BIN, ...calm(args)], {
    env: cleanEnv(env),
    cwd: temporaryFolder(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return ended(child)
}

function ended(child: ChildProcess): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (data) => {
    stdout += data
  })
  child.stderr?.on('data', (data) => {
    stderr += data
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}

export class RunningAgent {
  readonly url: string
  readonly logDir: string
  readonly child: ChildProcess
  readonly ended: Promise<Ended>

  constructor(url: string, logDir: string, child: ChildProcess, end: Promise<Ended>) {
    this.url = url
    this.logDir = logDir
    this.child = child
    this.ended = end
  }

  /** Starts `gpuwarden monitor` on a free port and waits until it watches; `onSpawn` gets its process before that. */
  static async start(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    logDir = temporaryFolder(),
    onSpawn: (child: ChildProcess) => void = () => undefined,
  ): Promise<RunningAgent> {
    const child = spawn(process.execPath, [BIN, 'monitor', '--port', '0', '--log-dir', logDir, ...calm(args)], {
      env: cleanEnv(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onSpawn(child)
    const end = ended(child)
    const url = await new Promise<string>((resolve, reject) => {
      let text = ''
      child.stderr?.on('data', (data) => {
        text += data
        const watching = text.split('\n').find((line) => line.includes('gpuwarden is watching'))
        if (watching) resolve(JSON.parse(watching).url)
      })
      void end.then((result) => reject(new Error(`the agent ended before it watched (code ${result.code}): ${result.stderr}`)))
    })
    return new RunningAgent(url, logDir, child, end)
  }

  async get<T = unknown>(path: string): Promise<T> {
    const answer = await fetch(this.url + path)
    return (await answer.json()) as T
  }

  async text(path: string): Promise<string> {
    return (await fetch(this.url + path)).text()
  }

  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.child.kill(signal)
    return this.ended
  }

  /** Every line of one kind of log, oldest file first. */
  lines(stream: string): Record<string, unknown>[] {
    // While a file is compressed it, its half-written archive and its archive can all be there.
    const names = readdirSync(this.logDir).filter((name) => name.startsWith(`${stream}_`) && /\.jsonl(\.gz)?$/.test(name))
    return names
      .filter((name) => !names.includes(name.replace(/\.gz$/, '')) || name.endsWith('.jsonl'))
      .sort()
      .flatMap((name) => {
        const bytes = readFileSync(join(this.logDir, name))
        return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n')
      })
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }
}

/** Polls until it is so. The limit is generous: it only ends a test that would fail anyway. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | null | false | undefined> | T | null | false | undefined,
  limitMs = 30_000,
): Promise<T> {
  const end = Date.now() + limitMs
  let last: unknown
  while (Date.now() < end) {
    try {
      const value = await probe()
      if (value) return value
      last = value
    } catch (error) {
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`gave up waiting until ${what}; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`)
}
