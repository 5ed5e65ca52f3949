/** `gpuwarden top`: the terminal UI, on an agent, on a sampler of its own, or on a recording. */
import { hostname } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { Feed } from '../tui/feed.ts'
import { LiveState, type LiveStateOptions } from '../tui/live-state.ts'
import { preferencesPath, readPreferences } from '../tui/preferences.ts'
import { colorDepth, speaksUtf8 } from '../tui/theme.ts'
import { TopScreen } from '../tui/top-screen.ts'
import { readTopOptions, type TopOptions } from './top-options.ts'

const STUCK_MS = 2000

/** A clock faster than this, or a recording, gives the engine enough to do to be worth its whole size. */
const CALM_INTERVAL_S = 0.5

export async function top(config: Config, options: Record<string, unknown>): Promise<number> {
  const given = readTopOptions(options)
  if (config.values.interval < CALM_INTERVAL_S || config.values.source.startsWith('replay:')) useWholeEngine()
  // The first frame needs no ledger, and should not wait for one.
  let ledger: LiveStateOptions['ledger'] = () => null
  const ledgerLoaded = async () => {
    const { ledgerOf } = await import('../core/memory/ledger.ts')
    ledger = (question) => ledgerOf(question)?.entries ?? null
  }
  const state = new LiveState({
    now: Date.now,
    devices: config.values.devices === null ? null : new Set(config.values.devices),
    intervalMs: config.values.interval * 1000,
    ledger: (question) => ledger(question),
  })
  state.hostname = hostname()
  state.isReadonly = given.readonly
  if (options.once === true || options.svg === true) {
    const [{ printOnce }] = await Promise.all([import('./top-once.ts'), ledgerLoaded()])
    return printOnce(config, state, given, options.svg === true)
  }
  if (process.stdout.isTTY !== true)
    throw new Failure('gpuwarden top needs a terminal, and standard output is not one', {
      exitCode: EXIT.usage,
      hint: 'Use "gpuwarden status" for one look, "gpuwarden monitor" to watch without a terminal, or "gpuwarden top --once" for one frame as text.',
    })
  const path = preferencesPath(process.env)
  const preferences = readPreferences(path)
  const screen = new TopScreen({
    state,
    input: process.stdin,
    output: process.stdout,
    preferences,
    preferencesPath: path,
    theme: given.theme ?? preferences.theme ?? 'dark',
    depth: colorDepth(process.env),
    ascii: given.ascii || !speaksUtf8(process.env),
    folder: process.cwd(),
  })
  return show(screen, async (fail) => {
    const [opened] = await Promise.all([openFeed(config, state, given, screen, fail), ledgerLoaded()])
    return opened
  })
}

/** Takes back what bin/gpuwarden.js set for a screen a second; the compiler in between stays out, as it is not in every V8. */
function useWholeEngine(): void {
  setFlagsFromString('--opt')
  setFlagsFromString('--semi-space-growth-factor=2')
}

type Fail = (error: unknown) => void

async function show(screen: TopScreen, open: (fail: Fail) => Promise<Feed>): Promise<number> {
  let fail: Fail = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  const ended = new Promise<string>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve(signal))
  })
  // Registered for as long as the terminal is ours: a crash must not leave it raw.
  const crashed = (error: unknown) => fail(error)
  process.on('uncaughtException', crashed)
  process.on('unhandledRejection', crashed)
  let opening: Promise<Feed> | null = null
  try {
    screen.open()
    opening = open(fail)
    opening.then((feed) => screen.attach(feed)).catch(fail)
    await Promise.race([screen.done, ended, failed])
  } finally {
    screen.close()
    process.off('uncaughtException', crashed)
    process.off('unhandledRejection', crashed)
    await stop(opening)
  }
  return EXIT.ok
}

/** Also what is still being opened: a driver that hangs must not keep the shell from its prompt. */
async function stop(opening: Promise<Feed> | null): Promise<void> {
  const timer = setTimeout(() => process.exit(EXIT.ok), STUCK_MS)
  const feed = await opening?.catch(() => null)
  await feed?.stop()
  clearTimeout(timer)
}

/** All that is loaded here comes after the first frame. */
async function openFeed(config: Config, state: LiveState, given: TopOptions, screen: TopScreen, fail: Fail): Promise<Feed> {
  const onChange = () => screen.changed()
  const [{ attach, embed, replay }, { findLocalAgent }, { readToken }] = await Promise.all([
    import('./top-feeds.ts'),
    import('./top-agent.ts'),
    import('./agent-address.ts'),
  ])
  if (given.connect !== null) return attach({ url: given.connect, token: readToken(config.values) }, state, onChange)
  if (config.values.source.startsWith('replay:')) return replay(config, state, onChange, fail)
  if (config.origins.source.from === 'default') {
    const { address, reason } = await findLocalAgent(config)
    if (reason !== null) screen.say(`${reason}; sampling in this process instead`, true)
    if (address) {
      try {
        return await attach(address, state, onChange)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        screen.say(`an agent runs here, but ${error.message}; sampling in this process instead`, true)
      }
    }
  }
  return embed(config, state, onChange, fail)
}
