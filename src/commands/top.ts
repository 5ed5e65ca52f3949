/** `gpuwarden top`: the dashboard in the terminal, on an agent, on a sampler of its own, or on a recording. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Config } from '../config.ts'
import { EXIT, Failure } from '../failure.ts'
import type { HubEvent } from '../kinds.ts'
import { type AgentAddress, isAgent } from '../tui/agent-client.ts'
import type { Feed } from '../tui/feed.ts'
import { LiveState } from '../tui/live-state.ts'
import { preferencesPath, readPreferences } from '../tui/preferences.ts'
import { FIRST_VIEW } from '../tui/screen-data.ts'
import { terminalSize } from '../tui/terminal.ts'
import { colourDepth, createTheme, speaksUtf8, THEME_NAMES, type ThemeName } from '../tui/theme.ts'
import { TopScreen } from '../tui/top-screen.ts'
import { attach, createJudge, embed, recordingIntake, replay } from './top-feeds.ts'

/** A local agent answers at once or is not there. */
const PROBE_MS = 300
const STUCK_MS = 2000
const LISTEN_MS = 1500

interface Given {
  readonly connect: string | null
  readonly theme: ThemeName | null
  readonly ascii: boolean
  readonly readonly: boolean
}

export async function top(config: Config, options: Record<string, unknown>): Promise<number> {
  const given = readOptions(options)
  const { ledgerOf } = await import('../memory/ledger.ts')
  const state = new LiveState({
    now: Date.now,
    devices: config.values.devices === null ? null : new Set(config.values.devices),
    intervalMs: config.values.interval * 1000,
    ledger: (question) => ledgerOf(question)?.entries ?? null,
  })
  state.hostname = hostname()
  state.isReadonly = given.readonly
  if (options.once === true || options.svg === true) return printOnce(config, state, given, options.svg === true)
  if (process.stdout.isTTY !== true)
    throw new Failure('the dashboard needs a terminal, and standard output is not one', {
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
    depth: colourDepth(process.env),
    ascii: given.ascii || !speaksUtf8(process.env),
    folder: process.cwd(),
  })
  return show(config, state, screen, given)
}

async function show(config: Config, state: LiveState, screen: TopScreen, given: Given): Promise<number> {
  let feed: Feed | null = null
  let fail: (error: unknown) => void = () => undefined
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
  try {
    screen.open()
    const opening = openFeed(config, state, given, screen, fail).then((opened) => {
      feed = opened
      screen.attach(opened)
    })
    opening.catch(fail)
    await Promise.race([screen.done, ended, failed])
  } finally {
    screen.close()
    process.off('uncaughtException', crashed)
    process.off('unhandledRejection', crashed)
    await stop(feed)
  }
  return EXIT.ok
}

/** A driver that hangs must not keep the shell from its prompt. */
async function stop(feed: Feed | null): Promise<void> {
  if (!feed) return
  const timer = setTimeout(() => process.exit(EXIT.ok), STUCK_MS)
  await feed.stop()
  clearTimeout(timer)
}

async function openFeed(config: Config, state: LiveState, given: Given, screen: TopScreen, fail: (error: unknown) => void): Promise<Feed> {
  const onChange = () => screen.changed()
  if (given.connect !== null) return attach({ url: given.connect, token: readToken(config) }, state, onChange)
  if (config.values.source.startsWith('replay:')) return replay(config, state, onChange, fail)
  if (config.origins.source.from === 'default') {
    const address: AgentAddress = { url: `http://127.0.0.1:${config.values['server.port']}`, token: readToken(config) }
    if (config.values['server.port'] !== 0 && (await isAgent(address, PROBE_MS))) {
      try {
        return await attach(address, state, onChange)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        screen.say(`an agent runs here, but ${error.message}; sampling in this process instead`, true)
      }
    }
  }
  return embed(config, state, onChange)
}

/** One frame as text or as a picture, for scripts and documentation. */
async function printOnce(config: Config, state: LiveState, given: Given, asSvg: boolean): Promise<number> {
  const size = terminalSize(process.stdout, process.env)
  const columns = { columns: size.columns * 2, gpu: null }
  if (given.connect !== null || (config.origins.source.from === 'default' && (await localAgent(config)))) {
    const url = given.connect ?? `http://127.0.0.1:${config.values['server.port']}`
    const feed = await attach({ url, token: readToken(config) }, state, () => undefined)
    // Training steps come with the stream alone.
    await new Promise((resolve) => setTimeout(resolve, LISTEN_MS))
    await feed.stop()
  } else if (config.values.source.startsWith('replay:')) {
    const { openRecording } = await import('../recording/recording.ts')
    const deliver = await recordingIntake(config, state)
    const path = config.values.source.slice('replay:'.length)
    const recording = await openRecording(path).catch((error: Error) => {
      throw new Failure(error.message, { exitCode: EXIT.noSource, cause: error })
    })
    for await (const item of recording) deliver(item)
    const { firstAt, lastAt } = recording.stats()
    state.origin = path
    state.replay = { at: lastAt ?? 0, firstAt: firstAt ?? 0, lastAt, speed: 1, state: 'ended' }
  } else {
    const { oneLook } = await import('../one-look.ts')
    const judge = await createJudge(config, (event) => state.accept(event))
    const onEvent = (event: HubEvent) => {
      state.accept(event)
      judge(event)
    }
    state.origin = 'sampling here'
    await oneLook(config, (sampling) => state.setHealth(sampling.state.health()), { onEvent })
  }
  const [{ render }, { frameSvg }] = await Promise.all([import('../tui/render.ts'), import('../tui/frame-svg.ts')])
  const theme = createTheme(given.theme ?? 'dark', 'many', given.ascii)
  const { grid } = render(state.data(columns), { ...FIRST_VIEW, hidden: new Set() }, size, theme)
  process.stdout.write(asSvg ? frameSvg(grid, theme) : `${grid.text().trimEnd()}\n`)
  return EXIT.ok
}

function localAgent(config: Config): Promise<boolean> {
  return isAgent({ url: `http://127.0.0.1:${config.values['server.port']}`, token: null }, PROBE_MS)
}

/** The agent's token where we may read it; whoever may not is asked for none. */
function readToken(config: Config): string | null {
  const file = config.values['server.token_file']
  if (config.values['server.token'] !== null) return config.values['server.token']
  if (file === null) return null
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null
    throw error
  }
}

function readOptions(options: Record<string, unknown>): Given {
  return {
    connect: readUrl(options.connect),
    theme: readTheme(options.theme),
    ascii: options.ascii === true,
    readonly: options.readonly === true,
  }
}

function readUrl(value: unknown): string | null {
  if (value === undefined) return null
  const text = /^https?:\/\//.test(String(value)) ? String(value) : `http://${String(value)}`
  if (URL.canParse(text)) return text.replace(/\/+$/, '')
  throw new Failure(`--connect: expected the address of an agent such as http://node7:4780; got ${JSON.stringify(value)}`, {
    exitCode: EXIT.usage,
  })
}

function readTheme(value: unknown): ThemeName | null {
  if (value === undefined) return null
  const theme = THEME_NAMES.find((name) => name === value)
  if (theme) return theme
  throw new Failure(`--theme: expected ${THEME_NAMES.join(', ')}; got ${JSON.stringify(value)}`, { exitCode: EXIT.usage })
}
