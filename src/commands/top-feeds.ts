/** The feeds of the terminal UI, put together from the rooms: an agent, a sampler of our own, a recording. */
import { hostname } from 'node:os'
import type { Config } from '../agent/config.ts'
import { type AgentAddress, AgentFault } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { HubEvent } from '../core/kinds.ts'
import type { Finding, SourceHealth } from '../core/model.ts'
import type { RecordingItem } from '../core/recording/recording.ts'
import { vendorOfModel } from '../sources/vendors.ts'
import type { RunRecord } from '../training/run-record.ts'
import { AgentFeed } from '../tui/agent-feed.ts'
import type { Feed } from '../tui/feed.ts'
import type { LiveState } from '../tui/live-state.ts'

const FASTEST_REPLAY = 1000
const LOOK_EVERY_MS = 15_000

export async function attach(address: AgentAddress, state: LiveState, onChange: () => void): Promise<Feed> {
  const { hostname: name } = new URL(address.url)
  const isLocal = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(name)
  state.origin = `agent ${new URL(address.url).host}`
  const feed = new AgentFeed({ address, state, isLocal, onChange })
  try {
    await feed.start()
  } catch (error) {
    if (error instanceof AgentFault && error.status === 401)
      throw new Failure(`it asks for a token: ${error.reason} (401)`, {
        exitCode: EXIT.usage,
        hint: 'Give the file that holds it with --token-file.',
      })
    if (!(error instanceof Error)) throw error
    throw new Failure(`cannot reach an agent at ${address.url}: ${error instanceof AgentFault ? error.reason : error.message}`, {
      exitCode: EXIT.noSource,
      hint: 'Start one there with "gpuwarden monitor", or leave --connect out to look at this machine.',
      cause: error,
    })
  }
  return feed
}

/** Gives the feed while the driver is still being opened, so that it can be ended at any time; what goes wrong comes through `fail`. */
export async function embed(config: Config, state: LiveState, onChange: () => void, fail: (error: unknown) => void): Promise<Feed> {
  const [{ Sampling }, { SILENT_LOG }] = await Promise.all([import('../agent/sampling.ts'), import('../agent/one-look.ts')])
  const sampling = new Sampling({ values: config.values, log: SILENT_LOG, runId: `top-${process.pid}`, mayStandIn: true })
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
  hub.addSink({
    name: 'screen',
    accept: (event) => {
      show(event)
      judge(event)
    },
  })
  sampling.open().catch(fail)
  createJudge(config, show, () => supervisor.health()).then((made) => {
    judge = made
    early.splice(0).forEach(judge)
  }, fail)
  return {
    get isLocal() {
      return sampling.state.gpus().every(({ info }) => info.provenance === 'live')
    },
    replay: null,
    alerts: null,
    usage: () => supervisor.usage(),
    health: () => supervisor.health(),
    stop: () => sampling.stop(),
  }
}

/** Shows every event to the detectors, and the screen what they concluded; now and then also `health`, for sources that are silent. */
export async function createJudge(
  config: Config,
  show: (event: HubEvent) => void,
  health: () => readonly SourceHealth[] = () => [],
): Promise<(event: HubEvent) => void> {
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
  const tell = (findings: readonly Finding[]) => {
    for (const finding of findings) show({ type: 'finding', finding })
  }
  let lookedAt = Date.now()
  return (event) => {
    tell(engine.accept(event))
    const now = Date.now()
    if (now - lookedAt < LOOK_EVERY_MS && now >= lookedAt) return
    lookedAt = now
    tell(engine.lookAtSources(health(), now))
  }
}

export async function replay(config: Config, state: LiveState, onChange: () => void, fail: (error: unknown) => void): Promise<Feed> {
  const [{ ReplayPlayer }, { openRecording }] = await Promise.all([
    import('../tui/replay-player.ts'),
    import('../core/recording/recording.ts'),
  ])
  const path = config.values.source.slice('replay:'.length)
  const speed = config.values['replay.speed']
  let intake = await recordingIntake(config, state)
  let pending = Promise.resolve()
  state.origin = path
  const player = new ReplayPlayer({
    open: async () => {
      await pending
      return openRecording(path, vendorOfModel)
    },
    speed: speed === 'max' ? FASTEST_REPLAY : speed,
    reset: () => {
      state.forget()
      pending = recordingIntake(config, state).then((made) => {
        intake = made
      })
    },
    deliver: (item) => intake.deliver(item),
    onChange: (data) => {
      if (data.state === 'ended') intake.finish()
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
export async function recordingIntake(config: Config, state: LiveState) {
  const [{ Hub }, { State }, { SILENT_LOG }, { RunTimeline }, { recordedRuns }, { publicRun }] = await Promise.all([
    import('../agent/hub.ts'),
    import('../agent/state.ts'),
    import('../agent/one-look.ts'),
    import('../training/run-timeline.ts'),
    import('../training/run-files.ts'),
    import('../training/run-record.ts'),
  ])
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
  hub.addSink({
    name: 'screen',
    accept: (event) => {
      if (event.type === 'tick' && event.tick.host && event.tick.host.hostname !== '') state.hostname = event.tick.host.hostname
      state.accept(event)
      judge(event)
    },
  })
  const timeline = new RunTimeline(await recordedRuns(config.values.source.slice('replay:'.length)))
  const announce = (runs: readonly RunRecord[]) => {
    for (const run of runs) hub.receiveRun(publicRun(run))
  }
  let last: object | null = null
  return {
    deliver: (item: RecordingItem): void => {
      if (item.devices !== last) hub.receiveDevices('replay', item.devices)
      last = item.devices
      announce(timeline.moveTo(item.at))
      hub.receive({ source: 'replay', provenance: 'replay', at: item.at, samples: item.samples })
    },
    /** The recording is over. */
    finish: () => announce(timeline.finish()),
  }
}
