/** One machine, three readers: at every moment the agent, an attached `top` and the page say the same, also those that came late. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Hub } from '../src/agent/hub.ts'
import { SILENT_LOG } from '../src/agent/one-look.ts'
import { State } from '../src/agent/state.ts'
import { createAlerts } from '../src/alerts/alerts.ts'
import { alertRoutes } from '../src/alerts/http-routes.ts'
import { settingsWith, sourceHealth } from '../src/alerts/pretend-world.contract.ts'
import type { AlertView } from '../src/core/alert-contract.ts'
import { shortModel } from '../src/core/format.ts'
import type { GpuView, HubEvent, StreamEvent } from '../src/core/kinds.ts'
import { compareAlerts, openAlertsInWords } from '../src/core/known/alerts.ts'
import { countBySeverity, findingsInWords } from '../src/core/known/findings.ts'
import { type Ask, askPicture } from '../src/core/known/picture.ts'
import { revived } from '../src/core/known/revive.ts'
import type { Finding, GpuEvent, GpuInfo, ProcessView, Run, Sample, SourceHealth } from '../src/core/model.ts'
import { openRecording } from '../src/core/recording/recording.ts'
import type { Route, RouteContext } from '../src/core/route.ts'
import { createEngine } from '../src/detectors/engine.ts'
import { detectors } from '../src/detectors/index.ts'
import { apiRoutes } from '../src/server/api-routes.ts'
import { createStream } from '../src/server/stream.ts'
import { createFilter } from '../src/server/stream-filter.ts'
import { demo } from '../src/sources/demo/index.ts'
import { sourceEnv } from '../src/sources/source.contract.ts'
import { LiveState } from '../src/tui/live-state.ts'
import { render } from '../src/tui/render.ts'
import { FIRST_VIEW } from '../src/tui/screen-data.ts'
import { EventReader } from '../src/tui/sse.ts'
import { createTheme } from '../src/tui/theme.ts'
import { stepWith } from '../web/src/pages/training/step.fixture.ts'
import { FIXTURES } from './program.ts'

const START = Date.UTC(2026, 10, 15, 12)
/** The clock of who looks at `top` is this much ahead of the agent's. */
const SKEW_MS = 3_600_000
/** Within this time the stream tells what changed among the alerts. */
const TOLD_MS = 300
const SELF = { version: '0', startedAt: START, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }

beforeEach(() => {
  vi.useFakeTimers({ now: START })
})
afterEach(() => {
  vi.useRealTimers()
})

/** An agent without sockets: what a screen hears and is answered went through JSON as in life. */
class World {
  health: readonly SourceHealth[]
  readonly runs: Run[] = []
  readonly state: State = new State({ now: Date.now, health: () => this.health, sinks: () => [], self: () => SELF, devices: null })
  readonly hub = new Hub({ state: this.state, log: SILENT_LOG, onProcesses: () => undefined })
  readonly alerts = createAlerts({
    ...{ dir: null, channels: new Map(), settings: settingsWith({ 'alerts.keep_firing_seconds': 10 }), sweepMs: 0 },
    ...{ state: this.state, log: SILENT_LOG, now: Date.now },
  })
  readonly #stream = createStream({
    ...{ state: this.state, boot: 'b', version: '0', maxClients: 9, log: SILENT_LOG },
    alertNews: this.alerts.news,
  })
  readonly #routes: readonly Route[]

  constructor(health: Partial<SourceHealth>) {
    this.health = [sourceHealth(health)]
    const engine = createEngine({ kinds: detectors, hostname: this.state.hostname })
    const judge = (event: HubEvent) => {
      for (const finding of engine.accept(event)) this.hub.receiveFinding(finding)
    }
    this.hub.addSink(this.#stream.sink)
    this.hub.addSink(this.alerts)
    this.hub.addSink({ name: 'detectors', accept: judge, dropped: () => ({ count: 0, reason: null }), close: async () => undefined })
    const none = { query: () => ({ gpu: '', fields: [], stepMs: 0, data: [], min: null, max: null }) }
    const metrics = { render: () => '', contentType: () => '' }
    this.#routes = [
      ...apiRoutes({ state: this.state, history: none, metrics, stream: this.#stream, extraHealth: () => ({}) }),
      ...alertRoutes({ alerts: this.alerts, unusable: new Map(), now: Date.now }),
    ]
  }

  readonly ask: Ask = async (path) => {
    const route = this.#routes.find((one) => one.path === path)
    const refuse = () => expect.fail(`${path} was refused`)
    const answer = path === '/api/v1/runs' ? { runs: this.runs } : await route?.handler({ query: {}, refuse } as unknown as RouteContext)
    return JSON.parse(JSON.stringify(answer))
  }

  listen(hear: (event: StreamEvent) => void): void {
    const outgoing = new PassThrough()
    const reader = new EventReader()
    outgoing.setEncoding('utf8').on('data', (text: string) => {
      for (const { event, data } of reader.feed(text)) if (event !== 'hello') hear(revived(JSON.parse(data) as StreamEvent))
    })
    this.#stream.join(outgoing as unknown as ServerResponse, { filter: createFilter(null, null), lastEventId: null, address: '' })
  }

  announce(run: Run): void {
    this.runs.push(run)
    this.hub.receiveRun(run)
  }

  sicken(health: Partial<SourceHealth>): void {
    this.health = [sourceHealth({ ...this.health[0], ...health })]
    this.hub.receiveHealth(this.health)
  }

  async pass(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms - TOLD_MS)
    await this.alerts.sweep()
    await vi.advanceTimersByTimeAsync(TOLD_MS)
  }
}

interface Said {
  readonly gpus: readonly GpuView[]
  readonly processes: readonly ProcessView[]
  readonly isHostLive: boolean | null
  readonly findings: readonly Finding[]
  readonly alerts: readonly AlertView[] | null
  readonly events?: readonly GpuEvent[]
}

/** What people read of it. */
function read({ gpus, processes, isHostLive, findings, alerts, events }: Said) {
  return {
    gpus: gpus.map(({ info, sample, ageMs, live }) => ({ label: info.label, name: shortModel(info), state: sample?.state, ageMs, live })),
    processes: processes.map(({ gpu, pid, info }) => `${gpu} ${pid} ${info?.user}`),
    isHostLive,
    counts: [findingsInWords(findings), countBySeverity(findings), openAlertsInWords(alerts ?? [])],
    findings: findings.map(({ fingerprint, severity, since, message }) => ({ fingerprint, severity, since, message })),
    alerts: alerts?.map(({ fingerprint, state, finding: { severity, since } }) => ({ fingerprint, state, severity, since })),
    events: events?.map(({ at, event, gpu }) => `${at} ${event} ${gpu}`),
  }
}

interface Screen {
  says(): Said
  runs(): readonly { readonly name: string; readonly step: number | null }[]
  /** The time that figures are of. */
  present(): number
}

function agentSays({ state, alerts }: World): Said {
  return {
    gpus: state.gpus(),
    processes: state.processes(),
    isHostLive: state.host()?.live ?? null,
    findings: state.findings(),
    alerts: alerts.list().toSorted(compareAlerts),
    events: state.events(),
  }
}

/** As AgentFeed and connection.ts do it: what is heard before the picture waits for it. */
async function follow(
  world: World,
  begin: (picture: Awaited<ReturnType<typeof askPicture>>) => void,
  accept: (event: StreamEvent) => void,
) {
  let waiting: StreamEvent[] | null = []
  world.listen((event) => (waiting ? waiting.push(event) : accept(event)))
  begin(await askPicture(world.ask))
  for (const event of waiting) accept(event)
  waiting = null
}

async function topOn(world: World): Promise<Screen & { readonly text: () => string }> {
  const state = new LiveState({ now: () => Date.now() + SKEW_MS, devices: null, intervalMs: 1000, ledger: () => null })
  await follow(
    world,
    (picture) => state.begin(picture),
    (event) => state.accept(event),
  )
  const data = () => state.data({ columns: 100, gpu: null })
  return {
    says: () => {
      const { gpus, processes, host, findings, alerts } = data()
      return { gpus: gpus.map(({ view }) => view), processes, isHostLive: host?.live ?? null, findings, alerts }
    },
    runs: () => data().runs.map(({ name, step }) => ({ name, step: step.step })),
    present: () => data().at,
    text: () => render(data(), FIRST_VIEW, { columns: 120, rows: 40 }, createTheme('mono', 'none', false)).grid.text(),
  }
}

/** Each has modules of its own: a page keeps what it knows in them. */
async function pageOn(world: World): Promise<Screen> {
  vi.resetModules()
  const store = await import('../web/src/live/store.ts')
  const { runClock } = await import('../web/src/live/agent-clock.ts')
  const { present } = await import('../web/src/live/present.ts')
  const { trainingRows } = await import('../web/src/pages/overview/training-rows.ts')
  await follow(world, store.begin, store.accept)
  store.setLink('live')
  return {
    says: () => {
      runClock(true)
      return {
        gpus: store.gpus.value.map((cell) => cell.view.value),
        processes: store.gpus.value.flatMap((cell) => cell.processes.value),
        isHostLive: store.host.value && store.isHostLive.value,
        findings: store.findings.value,
        alerts: store.alerts.value,
        events: store.events.value,
      }
    },
    runs: () => trainingRows(store.allRuns(), new Map(), [], present()).map(({ name, step }) => ({ name, step })),
    present,
  }
}

type Screens = Readonly<Record<string, Screen>>

function compare(world: World, screens: Screens): ReturnType<typeof read> {
  const agent = read(agentSays(world))
  for (const [name, screen] of Object.entries(screens)) {
    const said = screen.says()
    // `top` shows no events of the driver.
    expect(read(said), name).toEqual(said.events ? agent : { ...agent, events: undefined })
  }
  return agent
}

const RUN: Run = {
  ...{ id: '', name: 'the leaking one', host: null, user: 'ada', pid: null, gpus: ['0'], worldSize: 1 },
  ...{ totalSteps: 1000, startedAt: START, endedAt: null, outcome: null, ending: null, provenance: 'live' },
}

describe('live', () => {
  async function play() {
    const world = new World({ source: 'demo', provenance: 'simulated' })
    const source = await demo.open(sourceEnv({ options: { demoScenario: 'all' } }))
    if (source === null) throw new Error('the demo is always there')
    world.hub.receiveDevices('demo', source.devices())
    let tick = 0
    const run = async (seconds: number, devices: readonly GpuInfo[] = source.devices()) => {
      const ids = new Set(devices.map(({ id }) => id))
      for (let second = 0; second < seconds; second++, tick++) {
        await world.pass(1000)
        const read = await source.read({ at: Date.now(), monotonicMs: tick * 1000, tick })
        const samples = read.filter((sample) => sample.kind !== 'gpu' || ids.has(sample.gpu))
        world.hub.receive({ source: 'demo', provenance: 'simulated', at: Date.now(), samples })
      }
      await vi.advanceTimersByTimeAsync(TOLD_MS)
    }
    return { world, source, run }
  }

  it('findings, alerts and GPUs are the same on every screen while problems begin, and for a screen that joins later', async () => {
    const { world, run } = await play()
    const early = { top: await topOn(world), page: await pageOn(world) }
    compare(world, early)
    await run(55)
    const busy = compare(world, early)
    expect(busy.findings.length).toBeGreaterThan(5)
    const all = { ...early, lateTop: await topOn(world), latePage: await pageOn(world) }
    compare(world, all)
    const seen = new Set<string>()
    for (let moment = 0; moment < 12; moment++) {
      await run(13)
      for (const { fingerprint } of compare(world, all).findings) seen.add(fingerprint)
    }
    const { findings, alerts, counts } = compare(world, all)
    expect(seen.size).toBeGreaterThan(findings.length)
    expect(new Set(alerts?.map(({ state }) => state))).toContain('firing')
    expect(early.top.text()).toMatch(new RegExp(`Findings (\\d+–\\d+ of )?${findings.length}  ${counts[2]}`))
  })

  it('an alert began when its finding did, in the list of what is over as well', async () => {
    const { world, run } = await play()
    const early = { top: await topOn(world), page: await pageOn(world) }
    await run(60)
    const { findings, alerts = [] } = compare(world, early)
    const hot = findings.find(({ fingerprint }) => fingerprint.startsWith('thermal'))
    expect(alerts.find(({ fingerprint }) => fingerprint === hot?.fingerprint)?.since).toBe(hot?.since)
    // It ends, stays clear for longer than it is held, and is told of as over.
    const finding = world.state.findings().find(({ fingerprint }) => fingerprint === hot?.fingerprint)
    if (!finding) throw new Error('a GPU of the demo overheats')
    world.hub.receiveFinding({ ...finding, state: 'resolved', at: Date.now(), message: 'It has cooled down.' })
    await world.pass(11_000)
    const [past] = world.alerts.history()
    expect(past).toMatchObject({ fingerprint: hot?.fingerprint, since: hot?.since })
    compare(world, early)
  })

  it('the same problem that comes back shows one beginning, before the alert is sent again', async () => {
    const { world, run } = await play()
    const early = { top: await topOn(world), page: await pageOn(world) }
    await run(60)
    const finding = world.state.findings().find(({ detector }) => detector === 'thermal')
    if (!finding) throw new Error('a GPU of the demo overheats')
    world.hub.receiveFinding({ ...finding, state: 'resolved', at: Date.now() })
    await world.pass(2000)
    compare(world, early)
    for (const screen of Object.values(early)) {
      const { alerts } = read(screen.says())
      expect(alerts?.find(({ fingerprint }) => fingerprint === finding.fingerprint)?.state).toBe('resolved')
    }
    // Nobody was notified of its end yet.
    const again = { ...finding, at: Date.now(), since: Date.now() }
    world.hub.receiveFinding(again)
    await vi.advanceTimersByTimeAsync(TOLD_MS)
    for (const screen of Object.values(early)) {
      const { findings, alerts } = read(screen.says())
      expect(findings.find(({ fingerprint }) => fingerprint === again.fingerprint)?.since).toBe(again.since)
      expect(alerts?.find(({ fingerprint }) => fingerprint === again.fingerprint)).toMatchObject({ state: 'firing', since: again.since })
    }
    compare(world, early)
  })

  it('a source that falls silent, one that says so and a card that is lost are so everywhere at once', async () => {
    const { world, source, run } = await play()
    const early = { top: await topOn(world), page: await pageOn(world) }
    await run(3)
    expect(compare(world, early).gpus.every(({ live }) => live)).toBe(true)
    const all = { ...early, lateTop: await topOn(world), latePage: await pageOn(world) }
    for (let second = 0; second < 10; second++) {
      await world.pass(1000)
      compare(world, all)
    }
    // A simulation says nothing about the host.
    expect(compare(world, all)).toMatchObject({ isHostLive: null, gpus: [{ live: false }, {}, {}, {}, {}, {}] })
    await run(2)
    expect(compare(world, all).gpus[0]?.live).toBe(true)
    world.sicken({ state: 'not_responding', message: 'no answer' })
    await world.pass(TOLD_MS)
    expect(compare(world, all).gpus.map(({ live }) => live)).toEqual([false, false, false, false, false, false])
    world.sicken({ state: 'ok', message: null })
    const left = source.devices().slice(1)
    world.hub.receiveDevices('demo', left)
    await world.pass(TOLD_MS)
    expect(compare(world, all).gpus[0]).toMatchObject({ label: '0', state: 'lost' })
    await run(2, left)
    const said = compare(world, { ...all, latest: await pageOn(world) })
    expect(said.gpus.map(({ label, state }) => [label, state])[0]).toEqual(['0', 'lost'])
    expect(said.events?.filter((event) => event.includes(' lost ')).length).toBe(1)
  })

  it('a run has one name, one latest step, and runs or does not', async () => {
    const { world, run } = await play()
    const [top, page] = [await topOn(world), await pageOn(world)]
    await run(25)
    expect(page.runs()).toEqual(top.runs())
    world.announce({ ...RUN, id: 'told' })
    world.hub.receiveSteps([stepWith({ run: 'told', at: Date.now() })])
    await run(2)
    expect(top.runs().map(({ name }) => name)).toContain(RUN.name)
    expect(page.runs()).toEqual(top.runs())
  })
})

describe('played from a recording', () => {
  it.each(['leak_graph', 'intruder', 'divergence'])('%s is the same on every screen, at the time of the recording', async (trace) => {
    vi.useRealTimers()
    const items: { at: number; samples: readonly Sample[]; devices: readonly GpuInfo[] }[] = []
    for await (const item of await openRecording(join(FIXTURES, 'traces', trace))) items.push(item)
    vi.useFakeTimers({ now: START })
    const world = new World({ source: 'replay', provenance: 'replay' })
    const early = { top: await topOn(world), page: await pageOn(world) }
    let all: Screens = early
    let last: object | null = null
    let found = 0
    for (const [index, { at, samples, devices }] of items.entries()) {
      if (devices !== last) world.hub.receiveDevices('replay', devices)
      last = devices
      world.hub.receive({ source: 'replay', provenance: 'replay', at, samples })
      if (index % Math.ceil(items.length / 12) !== 0) continue
      await world.pass(500)
      found = Math.max(found, compare(world, all).findings.length)
      expect(new Set(Object.values(all).map((screen) => screen.present()))).toEqual(new Set([at]))
      if (index > items.length / 2) all = { ...early, lateTop: await topOn(world), latePage: await pageOn(world) }
      expect(early.top.runs()).toEqual(early.page.runs())
    }
    expect(found).toBeGreaterThan(0)
    world.sicken({ state: 'ended' })
    await world.pass(500)
    expect(compare(world, all).gpus.some(({ live }) => live)).toBe(false)
  })
})
