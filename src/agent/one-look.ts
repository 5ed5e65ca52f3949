/** Looks at the GPUs for a moment and hands over what is known: for commands that print once and end. */
import { randomBytes } from 'node:crypto'
import { EXIT } from '../core/failure.ts'
import type { GpuView, HubEvent, Log } from '../core/kinds.ts'
import type { SourceHealth } from '../core/model.ts'
import type { Config } from './config.ts'
import { type Opened, Sampling } from './sampling.ts'

/** Rates (PCIe, GPM, CPU) need two samples; a short pause between them is enough. */
const TICKS = 2
const INTERVAL_SECONDS = 0.25

/** Whoever waits for an answer wants to know for what, and that it ends: a driver that starts slower is said not to respond. */
const SAY_AFTER_MS = 2000
const OPEN_SECONDS = 7
const GIVE_UP_MS = 9000

export const SILENT_LOG: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => SILENT_LOG,
}

export interface LookOptions {
  readonly mayStandIn?: boolean
  readonly onEvent?: (event: HubEvent) => void
  readonly samplerEntry?: URL
}

export async function oneLook<T>(config: Config, use: (sampling: Sampling, opened: Opened) => T, options: LookOptions = {}): Promise<T> {
  const values = { ...impatient(config), interval: INTERVAL_SECONDS, 'replay.speed': 'max' as const }
  let finish: () => void = () => undefined
  const enough = new Promise<void>((resolve) => {
    finish = resolve
  })
  const sampling = new Sampling({
    values,
    log: SILENT_LOG,
    runId: randomBytes(16).toString('hex'),
    onEnded: () => finish(),
    ...(options.mayStandIn ? { mayStandIn: true } : {}),
    ...(options.samplerEntry ? { samplerEntry: options.samplerEntry } : {}),
  })
  const ticks = new Map<string, number>()
  let isOpen = false
  const isEnough = () =>
    isOpen &&
    !values.source.startsWith('replay:') &&
    sampling.state.health().every((source) => isDown(source) || (ticks.get(source.source) ?? 0) >= TICKS) &&
    knowsProcesses(sampling)
  sampling.hub.addSink({
    name: 'look',
    accept: (event) => {
      options.onEvent?.(event)
      if (event.type === 'tick') ticks.set(event.tick.source, (ticks.get(event.tick.source) ?? 0) + 1)
      if (isEnough()) finish()
    },
  })
  const stopSaying = sayWaiting(sampling)
  const timer = values.source.startsWith('replay:') ? undefined : setTimeout(finish, GIVE_UP_MS)
  try {
    const opened = await sampling.open()
    for (const index of opened.missing) process.stderr.write(`gpuwarden: there is no GPU ${index}\n`)
    for (const note of opened.notes) process.stderr.write(`gpuwarden: ${note}\n`)
    isOpen = true
    if (isEnough()) finish()
    await enough
    return use(sampling, opened)
  } finally {
    clearTimeout(timer)
    stopSaying()
    await sampling.stop()
  }
}

/** How a look ends: with code 5 where a driver cannot be used, with 3 where there is no GPU. */
export function exitOf(gpus: readonly GpuView[], health: readonly SourceHealth[]): number {
  if (health.some((one) => one.source !== 'host' && isDown(one)) || gpus.some(({ sample }) => sample?.state === 'no_driver'))
    return EXIT.noDriver
  return gpus.length === 0 ? EXIT.noSource : EXIT.ok
}

/** Says on standard error what is waited for, if it takes long. */
export function sayWaiting(sampling: Sampling): () => void {
  const timer = setTimeout(() => {
    // They are opened one after the other: the first holds up the rest.
    const held = sampling.state.health().find(({ state, source }) => state === 'starting' && source !== 'host')
    if (held) process.stderr.write(`gpuwarden: waiting for the ${held.source} driver to answer …\n`)
  }, SAY_AFTER_MS)
  return () => clearTimeout(timer)
}

/** The settings, with less patience for a driver that starts, unless somebody asked for more. */
export function impatient({ values, origins }: Config): Config['values'] {
  return origins.open_deadline.from === 'default' ? { ...values, open_deadline: OPEN_SECONDS } : values
}

function isDown({ state }: SourceHealth): boolean {
  return state === 'failed' || state === 'crashed' || state === 'not_responding'
}

/** Whoever can be looked up has been, or the host source has had its turn after the GPUs were read. */
function knowsProcesses(sampling: Sampling): boolean {
  const processes = sampling.state.processes()
  if (processes.length === 0 || processes.every((process) => process.info !== null)) return true
  const host = sampling.state.health().find((source) => source.source === 'host')
  return host === undefined || host.samples >= TICKS + 1
}
