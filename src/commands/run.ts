/** `gpuwarden run -- CMD`: the command as it is, watched; a summary when it ends, and its exit code. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { constants, hostname } from 'node:os'
import { basename, delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { printable } from '../core/format.ts'
import { launchCommand } from '../core/launcher.ts'
import { userName } from '../core/user-name.ts'
import { summaryText } from '../report/training-text.ts'
import { PrintedSteps } from '../training/printed-steps.ts'
import { newRunId } from '../training/run-id.ts'
import { readPrice, reportOf, writeHtml } from './report.ts'
import { openWatcher, type Watcher } from './run-agent.ts'
import { type Ending, startCommand } from './run-command.ts'
import { RunWatch } from './run-watch.ts'

const INTERPRETERS = /^(python[\d.]*|pypy\d?|node|bash|sh|zsh|uv|torchrun|accelerate|deepspeed|srun|mpirun|env|time|nice|stdbuf)$/
/** Words of launchers that are not what is launched. */
const LAUNCHER_WORDS = new Set(['launch', 'run'])
const LONGEST_NAME = 200
/** About 1 KB each. */
const RECORDED_COLLECTIVES = '2000'

export async function run(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  const [program] = args
  if (program === undefined)
    throw new Failure('which command? Give it after --', { exitCode: EXIT.usage, hint: 'For example: gpuwarden run -- python train.py' })
  const price = readPrice(options.pricePerHour)
  const isQuiet = options.quiet === true
  const name = printable(typeof options.name === 'string' ? options.name : nameOf(args)).slice(0, LONGEST_NAME) || 'run'
  // Nobody may read what we say; the command goes on all the same.
  process.stderr.on('error', () => undefined)
  const watcher = await openWatcher(config).catch((error: unknown) => {
    // The command is what matters: it runs, watched or not.
    say(`the command runs without being watched: ${(error as Error).message}`)
    return null
  })
  const id = newRunId()
  const correlationId = process.env.GPUWARDEN_CORRELATION_ID || randomBytes(16).toString('hex')
  const layers = layerEnvironment(options.watchModel)
  const hooks = options.hooks !== false && watcher ? { ...hookEnvironment(process.env), ...layers } : {}
  const env = watcher ? { ...environment(watcher, id, name, correlationId), ...hooks } : {}
  const startedAt = Date.now()
  const printed = watcher && options.parseOutput === true ? new PrintedSteps(watcher.link, { id, name, started_at: startedAt }) : null
  const command = startCommand(args, env, printed ? (stream, text) => printed.feed(stream, text) : null)
  const watch =
    watcher && command.pid !== null
      ? new RunWatch(
          watcher,
          {
            id,
            name,
            host: hostname(),
            user: userName(),
            pid: command.pid,
            command: args.join(' '),
            correlation_id: correlationId,
            started_at: startedAt,
          },
          Math.max(500, config.values.interval * 1000),
        )
      : null
  const ending = await command.ended
  await printed?.close()
  if (!watcher || !watch) {
    await watcher?.close('the command could not be started')
    if (ending.fault !== null) say(`${program}: ${ending.fault}`)
    return leave(ending)
  }
  const { summary, record } = await watch.finish(
    ending,
    { sawOutOfMemory: printed?.sawOutOfMemory === true, stepsTaken: printed?.stepsTaken ?? 0 },
    price,
  )
  await watcher.close('the command has ended')
  if (!isQuiet) process.stderr.write(`\n${summaryText(summary)}\n`)
  if (typeof options.report === 'string') await writeReport(options.report, record, watcher, config, price)
  return leave(ending)
}

/** How often the hooks look at the layers of the model. */
function layerEnvironment(wanted: unknown): Readonly<Record<string, string>> {
  if (wanted === undefined) return {}
  const steps = wanted === true ? 100 : Number(wanted)
  if (Number.isInteger(steps) && steps >= 1) return { GPUWARDEN_WATCH_MODEL: String(steps) }
  throw new Failure(`--watch-model: expected steps, 1 or more, got ${String(wanted)}`, { exitCode: EXIT.usage })
}

async function writeReport(
  file: string,
  record: Awaited<ReturnType<RunWatch['finish']>>['record'],
  watcher: Watcher,
  config: Config,
  price: number | null,
): Promise<void> {
  try {
    const dir = record?.logDir ?? config.values['log.dir']
    if (!record) throw new Failure(`the agent at ${watcher.link.url} does not answer, or does not know the run any more`)
    await writeHtml(await reportOf(dir, record, price), file)
    say(`wrote ${file}`)
  } catch (error) {
    // The exit code is the command's, whatever becomes of the report.
    say(`no report was written: ${(error as Error).message}`)
  }
}

function environment({ link, tokenFile }: Watcher, id: string, name: string, correlationId: string): Record<string, string> {
  return {
    GPUWARDEN_URL: link.url,
    GPUWARDEN_RUN_ID: id,
    GPUWARDEN_RUN_NAME: name,
    GPUWARDEN_CORRELATION_ID: correlationId,
    ...recorderEnvironment(process.env),
    // Analyzes the snapshot of an SDK that runs out of memory.
    GPUWARDEN_PROGRAM: launchCommand().at(-1) as string,
    ...(tokenFile === null ? {} : { GPUWARDEN_TOKEN_FILE: tokenFile }),
  }
}

/** PyTorch remembers its last collectives from the first one on, or not at all. Before 2.9 the variable had another name, which the SDK sets. */
export function recorderEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const isSet = env.TORCH_FR_BUFFER_SIZE !== undefined || env.TORCH_NCCL_TRACE_BUFFER_SIZE !== undefined
  return isSet ? {} : { TORCH_FR_BUFFER_SIZE: RECORDED_COLLECTIVES }
}

/** Python runs the SDK's `sitecustomize.py` at its start, which attaches to PyTorch once the program has imported it. */
export function hookEnvironment({ PYTHONPATH, GPUWARDEN_NO_HOOKS }: NodeJS.ProcessEnv): Record<string, string> {
  const folder = fileURLToPath(new URL('../../python/gpuwarden/startup', import.meta.url))
  if (/^\s*(1|true|yes|on)\s*$/i.test(GPUWARDEN_NO_HOOKS ?? '') || !existsSync(folder)) return {}
  return { PYTHONPATH: PYTHONPATH ? `${folder}${delimiter}${PYTHONPATH}` : folder }
}

/** `train.py` of `python -u train.py --lr 1`, else the program's own name. */
export function nameOf(args: readonly string[]): string {
  const [program = 'run'] = args
  const own = basename(program)
  if (!INTERPRETERS.test(own)) return own
  const index = args.findIndex((word, at) => at > 0 && !isLauncherWord(word))
  const script = args[index]
  // What follows -c is a program, not the name of one.
  if (script === undefined || args[index - 1] === '-c') return own
  return INTERPRETERS.test(basename(script)) ? nameOf(args.slice(index)) : basename(script)
}

/** Options, assignments and numbers come before what is launched. */
function isLauncherWord(word: string): boolean {
  return word.startsWith('-') || LAUNCHER_WORDS.has(word) || /^\w+=/.test(word) || /^\d+$/.test(word)
}

/** Signals that end a program by themselves: whoever started us is to see the same end. */
const PASSED_ON: readonly NodeJS.Signals[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
]

function leave({ code, signal }: Ending): number {
  if (signal === null) return code ?? EXIT.internal
  if (PASSED_ON.includes(signal)) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  }
  return 128 + (constants.signals[signal] ?? 0)
}

function say(text: string): void {
  process.stderr.write(`gpuwarden: ${text}\n`)
}
