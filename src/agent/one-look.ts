/** Looks at the GPUs for a moment and hands over what is known: for commands that print once and end. */
import { randomBytes } from 'node:crypto'
import { EXIT, Failure } from '../core/failure.ts'
import type { HubEvent, Log } from '../core/kinds.ts'
import type { Config } from './config.ts'
import { type Opened, Sampling } from './sampling.ts'

/** Rates (PCIe, GPM, CPU) need two samples; a short pause between them is enough. */
const TICKS = 2
const INTERVAL_SECONDS = 0.25

export const SILENT_LOG: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => SILENT_LOG,
}

export interface LookOptions {
  readonly onEvent?: (event: HubEvent) => void
  readonly samplerEntry?: URL
}

export async function oneLook<T>(config: Config, use: (sampling: Sampling, opened: Opened) => T, options: LookOptions = {}): Promise<T> {
  const values = { ...config.values, interval: INTERVAL_SECONDS, 'replay.speed': 'max' as const }
  let finish: () => void = () => undefined
  const enough = new Promise<void>((resolve) => {
    finish = resolve
  })
  const sampling = new Sampling({
    values,
    log: SILENT_LOG,
    runId: randomBytes(16).toString('hex'),
    onEnded: () => finish(),
    ...(options.samplerEntry ? { samplerEntry: options.samplerEntry } : {}),
  })
  const ticks = new Map<string, number>()
  const isEnough = () =>
    !values.source.startsWith('replay:') &&
    sampling.state.health().every((source) => source.state === 'failed' || (ticks.get(source.source) ?? 0) >= TICKS) &&
    ticks.size > 0 &&
    knowsProcesses(sampling)
  sampling.hub.addSink({
    name: 'look',
    accept: (event) => {
      options.onEvent?.(event)
      if (event.type === 'tick') ticks.set(event.tick.source, (ticks.get(event.tick.source) ?? 0) + 1)
      if (isEnough()) finish()
    },
  })
  try {
    const opened = await sampling.open()
    const failed = opened.openings.filter((opening) => opening.result === 'failed')
    if (failed.length > 0 && opened.openings.every((opening) => opening.result !== 'opened'))
      throw new Failure(failed.map((opening) => opening.message).join('; '), {
        exitCode: EXIT.noSource,
        hint: 'Run "gpuwarden doctor" for what to do.',
      })
    for (const index of opened.missing) process.stderr.write(`gpuwarden: there is no GPU ${index}\n`)
    const timer = setTimeout(finish, (values.deadline + 1) * 1000)
    await enough
    clearTimeout(timer)
    return use(sampling, opened)
  } finally {
    await sampling.stop()
  }
}

/** Whoever can be looked up has been, or the host source has had its turn after the GPUs were read. */
function knowsProcesses(sampling: Sampling): boolean {
  const processes = sampling.state.processes()
  if (processes.length === 0 || processes.every((process) => process.info !== null)) return true
  const host = sampling.state.health().find((source) => source.source === 'host')
  return host === undefined || host.samples >= TICKS + 1
}
