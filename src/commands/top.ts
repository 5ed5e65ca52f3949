/** `gpuwarden top`: the dashboard in the terminal, on an agent, on a sampler of its own, or on a recording. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Config } from '../config.ts'
import { EXIT, Failure } from '../failure.ts'
import type { HubEvent, Sink } from '../kinds.ts'
import { type AgentAddress, AgentRefusal, isAgent } from '../tui/agent-client.ts'
import { AgentFeed } from '../tui/agent-feed.ts'
import type { Feed } from '../tui/feed.ts'
import { LiveState } from '../tui/live-state.ts'
import { preferencesPath, readPreferences } from '../tui/preferences.ts'
import { FIRST_VIEW } from '../tui/screen-data.ts'
import { terminalSize } from '../tui/terminal.ts'
import { colourDepth, createTheme, speaksUtf8, THEME_NAMES, type ThemeName } from '../tui/theme.ts'
import { TopScreen } from '../tui/top-screen.ts'

/** A local agent answers at once or is not there. */
const PROBE_MS = 300
const STUCK_MS = 2000
const FASTEST_REPLAY = 1000

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

async function attach(address: AgentAddress, state: LiveState, onChange: () => void): Promise<Feed> {
  const { hostname: name } = new URL(address.url)
  const isLocal = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(name)
  state.origin = `agent ${new URL(address.url).host}`
  const feed = new AgentFeed({ address, state, isLocal, onChange })
  try {
    await feed.start()
  } catch (error) {
    if (error instanceof AgentRefusal && error.status === 401)
      throw new Failure(`it asks for a token: ${error.message}`, {
        exitCode: EXIT.usage,
        hint: 'Give the file that holds it with --token-file.',
      })
    if (!(error instanceof Error)) throw error
    throw new Failure(`no agent can be reached at ${address.url}: ${error.message}`, {
      exitCode: EXIT.noSource,
      hint: 'Start one there with "gpuwarden monitor", or leave --connect out to look at this machine.',
      cause: error,
    })
  }
  return feed
}

async function embed(config: Config, state: LiveState, onChange: () => void): Promise<Feed> {
  const [{ Sampling }, { SILENT_LOG }] = await Promise.all([import('../sampling.ts'), import('../one-look.ts')])
  const sampling = new Sampling({ values: config.values, log: SILENT_LOG, runId: randomBytes(16).toString('hex') })
  const { hub, supervisor } = sampling
  state.origin = 'sampling here'
  const show = (event: HubEvent) => {
    state.accept(event)
    onChange()
  }
  // The detectors are loaded while the driver starts; what comes before they are ready waits for them.
  const early: HubEvent[] = []
  let judge = (event: HubEvent) => {
    early.push(event)
  }
  hub.addSink(
    screenSink((event) => {
      show(event)
      judge(event)
    }),
  )
  const opening = sampling.open()
  // Reported below, once the detectors are there.
  opening.catch(() => undefined)
  judge = await createJudge(config, show)
  early.forEach(judge)
  const feed: Feed = {
    get isLocal() {
      return sampling.state.gpus().every(({ info }) => info.provenance === 'live')
    },
    replay: null,
    usage: () => supervisor.usage(),
    health: () => supervisor.health(),
    stop: () => sampling.stop(),
  }
  try {
    await opening
  } catch (error) {
    await sampling.stop()
    throw error
  }
  return feed
}

/** Shows every event to the detectors, and the screen what they concluded. */
async function createJudge(config: Config, show: (event: HubEvent) => void): Promise<(event: HubEvent) => void> {
  const [{ createEngine }, { detectors }, { detectorOptions }] = await Promise.all([
    import('../detectors/engine.ts'),
    import('../detectors/index.ts'),
    import('../detectors/settings.ts'),
  ])
  const { values } = config
  const engine = createEngine({
    kinds: detectors,
    options: detectorOptions(values),
    disabled: values['detectors.disabled'],
    hostname: hostname(),
  })
  return (event) => {
    for (const finding of engine.accept(event)) show({ type: 'finding', finding })
  }
}

function screenSink(accept: (event: HubEvent) => void): Sink {
  return { name: 'screen', accept, dropped: () => ({ count: 0, reason: null }), close: async () => undefined }
}

async function replay(config: Config, state: LiveState, onChange: () => void, fail: (error: unknown) => void): Promise<Feed> {
  const [{ ReplayPlayer }, { openRecording }] = await Promise.all([import('../tui/replay-player.ts'), import('../recording/recording.ts')])
  const path = config.values.source.slice('replay:'.length)
  const speed = config.values['replay.speed']
  let deliver = await recordingIntake(config, state)
  let pending = Promise.resolve()
  state.origin = path
  const player = new ReplayPlayer({
    open: async () => {
      await pending
      return openRecording(path)
    },
    speed: speed === 'max' ? FASTEST_REPLAY : speed,
    reset: () => {
      state.forget()
      pending = recordingIntake(config, state).then((made) => {
        deliver = made
      })
    },
    deliver: (item) => deliver(item),
    onChange: (data) => {
      state.replay = data
      onChange()
    },
    onFailure: fail,
  })
  await player.start().catch((error: Error) => {
    throw new Failure(error.message, { exitCode: EXIT.noSource, cause: error })
  })
  return player
}

/** Joins and judges what was recorded as the agent would have done. */
async function recordingIntake(config: Config, state: LiveState) {
  const [{ Hub }, { State }, { SILENT_LOG }] = await Promise.all([import('../hub.ts'), import('../state.ts'), import('../one-look.ts')])
  const { devices } = config.values
  const known = new State({
    now: Date.now,
    health: () => [],
    sinks: () => [],
    self: () => ({ version: '', startedAt: 0, runId: '', pid: process.pid, cpuSeconds: 0, residentBytes: 0 }),
    devices: devices === null ? null : new Set(devices),
  })
  const hub = new Hub({ state: known, log: SILENT_LOG, onProcesses: () => undefined })
  const judge = await createJudge(config, (event) => state.accept(event))
  hub.addSink(
    screenSink((event) => {
      if (event.type === 'tick' && event.tick.host && event.tick.host.hostname !== '') state.hostname = event.tick.host.hostname
      state.accept(event)
      judge(event)
    }),
  )
  let last: object | null = null
  return (item: import('../recording/recording.ts').RecordingItem): void => {
    if (item.devices !== last) hub.receiveDevices('replay', item.devices)
    last = item.devices
    hub.receive({ source: 'replay', provenance: 'replay', at: item.at, samples: item.samples })
  }
}

/** One frame as text or as a picture, for scripts and documentation. */
async function printOnce(config: Config, state: LiveState, given: Given, asSvg: boolean): Promise<number> {
  const size = terminalSize(process.stdout, process.env)
  const columns = { columns: size.columns * 2, gpu: null }
  if (given.connect !== null || (config.origins.source.from === 'default' && (await localAgent(config)))) {
    const url = given.connect ?? `http://127.0.0.1:${config.values['server.port']}`
    const feed = await attach({ url, token: readToken(config) }, state, () => undefined)
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
