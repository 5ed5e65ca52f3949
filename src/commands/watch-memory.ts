/** What the memory commands share: their defaults, watching until the time is over or Ctrl-C, and the progress on a terminal. */
import type { Config, ConfigValues } from '../agent/config.ts'
import type { DetectorKind } from '../core/detector-contract.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatPercent } from '../core/format.ts'
import { type MemoryObserver, MemoryWatch } from '../library/memory-watch.ts'
import { AgentSteps } from './agent-steps.ts'
import { FAST_INTERVAL_SECONDS } from './fast-interval.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { ProgressLine } from './progress-line.ts'

export interface MemoryCommand {
  readonly config: Config
  readonly options: Readonly<Record<string, unknown>>
  /** How long, when --duration is not given and the GPUs are live. A recording is read to its end. */
  readonly defaultSeconds: number
  /** `profiling`, as the progress line begins. */
  readonly doing: string
  readonly observers: (print: (text: string) => void) => readonly MemoryObserver[]
  readonly kinds?: readonly DetectorKind[]
}

export interface Watched {
  readonly watch: MemoryWatch
  readonly seconds: number
  readonly isSimulated: boolean
}

/** Watches, and gives what was seen; the GPUs are closed by then. */
export async function watchMemory(command: MemoryCommand): Promise<Watched> {
  endWhenPipeCloses()
  const { config, options } = command
  const values = memoryValues(config)
  const isReplay = values.source.startsWith('replay:')
  const seconds = readSeconds(options.duration) ?? (isReplay ? 0 : command.defaultSeconds)
  const begunAt = Date.now()
  const progress = new ProgressLine(() => progressText(command.doing, watch, begunAt, isReplay ? 0 : seconds))
  const print = (text: string) => {
    progress.clear()
    writeOut(`${text}\n`)
  }
  const watch = new MemoryWatch({
    values,
    observers: command.observers(print),
    ...(command.kinds ? { kinds: command.kinds } : {}),
    ...(isReplay ? { recordedSeconds: seconds } : {}),
  })
  // Before start(): a Ctrl-C while a cold driver opens must end as cleanly as a later one.
  const interruption = new Interruption()
  const steps = new AgentSteps(values, watch)
  const limit = new TimeLimit()
  try {
    const opened = watch.start()
    await Promise.race([opened, interruption.happened])
    if (!interruption.hasHappened) {
      await opened
      if (!isReplay && values.source !== 'demo') await listenTo(steps)
      progress.draw()
      await Promise.race([interruption.happened, watch.ended, ...(seconds > 0 && !isReplay ? [limit.passed(seconds)] : [])])
    }
    // A start that is still under way ends with the GPUs; how it would have gone matters no more.
    opened.catch(() => undefined)
  } finally {
    interruption.forget()
    limit.clear()
    progress.stop()
    steps.stop()
    await watch.stop()
  }
  const gpus = watch.gpus()
  if (watch.lastAt === null)
    throw new Failure(['no sample of a GPU was taken', ...watch.troubles()].join('; '), {
      exitCode: EXIT.noSource,
      hint: 'Run "gpuwarden doctor" for what to do.',
    })
  for (const trouble of watch.troubles()) process.stderr.write(`gpuwarden: ${trouble}\n`)
  return { watch, seconds: (watch.lastAt - (watch.firstAt ?? watch.lastAt)) / 1000, isSimulated: gpus.some(isSimulated) }
}

/** An agent that refuses costs the training figures, not the command. */
async function listenTo(steps: AgentSteps): Promise<void> {
  try {
    await steps.listen()
  } catch (error) {
    process.stderr.write(`gpuwarden: the running agent does not report training: ${(error as Error).message}\n`)
  }
}

/** The memory tools look ten times a second and read recordings as fast as they can, unless something else was asked for. */
function memoryValues({ values, origins }: Config): ConfigValues {
  return {
    ...values,
    interval: origins.interval.from === 'default' ? FAST_INTERVAL_SECONDS : values.interval,
    'replay.speed': origins['replay.speed'].from === 'default' ? 'max' : values['replay.speed'],
  }
}

export function devicesOf({ values }: Config): ReadonlySet<number> | null {
  return values.devices === null ? null : new Set(values.devices)
}

function readSeconds(given: unknown): number | null {
  if (given === undefined) return null
  const seconds = Number(given)
  if (given !== '' && Number.isFinite(seconds) && seconds >= 0) return seconds
  throw new Failure(`--duration: expected seconds, 0 or more; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

/** A number that was given by a flag, checked by `check`; `fallback` when it was not given. */
export function readNumber(given: unknown, flag: string, fallback: number, check: (value: number) => number): number {
  if (given === undefined) return fallback
  try {
    return check(given === '' ? Number.NaN : Number(given))
  } catch (error) {
    // The library's message begins with the name of its own parameter; here the flag stands in its place.
    const message = (error as Error).message.replace(/^\w+: /, '').replace(/got NaN$/, `got ${JSON.stringify(given)}`)
    throw new Failure(`${flag}: ${message}`, { exitCode: EXIT.usage })
  }
}

function isSimulated({ info }: { readonly info: { readonly provenance: string } }): boolean {
  return info.provenance === 'simulated'
}

function progressText(doing: string, watch: MemoryWatch, begunAt: number, seconds: number): string {
  const passed = Math.round((Date.now() - begunAt) / 1000)
  const gpus = watch.gpus().map(({ info, sample }) => {
    const { memoryUsedBytes: used = null, memoryTotalBytes: total = null } = sample ?? {}
    return `GPU ${info.label} ${formatPercent(used === null || total === null || total <= 0 ? null : used / total)}${isSimulated({ info }) ? ' SIMULATED' : ''}`
  })
  return `${doing} ${passed}${seconds > 0 ? ` of ${seconds}` : ''} s  ${gpus.join('  ')}  (Ctrl-C ends)`
}

class TimeLimit {
  #timer: NodeJS.Timeout | undefined

  passed(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(resolve, seconds * 1000)
    })
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}

/** Ctrl-C, SIGTERM, a closed terminal: the first ends the watching, the second the program. */
class Interruption {
  readonly happened: Promise<void>
  hasHappened = false
  readonly #signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  #listener: () => void = () => undefined

  constructor() {
    this.happened = new Promise((resolve) => {
      this.#listener = () => {
        this.hasHappened = true
        this.forget()
        resolve()
      }
    })
    for (const signal of this.#signals) process.once(signal, this.#listener)
  }

  forget(): void {
    for (const signal of this.#signals) process.removeListener(signal, this.#listener)
  }
}
