import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAlerts } from '../alerts/alerts.ts'
import { gpuSample, sourceHealth, tickOf } from '../alerts/pretend-world.contract.ts'
import type { DetectorKind } from '../core/detector-contract.ts'
import { Failure } from '../core/failure.ts'
import type { HubEvent, Log } from '../core/kinds.ts'
import type { Finding, Run, SourceHealth } from '../core/model.ts'
import { NO_FIGURES } from '../core/record.ts'
import { detectors } from '../detectors/index.ts'
import { PRETEND_DETECTOR } from '../detectors/inputs.fixture.ts'
import { lossNan } from '../detectors/loss-nan.ts'
import { thermal } from '../detectors/thermal.ts'
import { type ConfigValues, loadConfig } from './config.ts'
import { Hub } from './hub.ts'
import { State } from './state.ts'
import { Watching } from './watching.ts'

const AT = 1_760_000_000_000

const finding = (count: number): Finding => ({
  fingerprint: 'counter|host=box',
  detector: 'counter',
  provenance: 'live',
  subject: { host: 'box', gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null },
  severity: 'warning',
  state: 'active',
  at: AT,
  since: AT,
  message: `${count} steps`,
  evidence: { count },
  confidence: 1,
  advice: [],
  predictedAt: null,
  predictedEarliestAt: null,
  predictedLatestAt: null,
  riskLevel: null,
})

/** Counts what it is shown, and says so each time. */
const counter: DetectorKind = {
  ...PRETEND_DETECTOR,
  name: 'counter',
  defaults: {},
  create() {
    let count = 0
    return {
      accept: () => [finding(++count)],
      snapshot: () => ({ count }),
      restore(state) {
        count = (state as { count: number }).count
        if (!Number.isInteger(count)) throw new Error('expected a count')
      },
    }
  },
}

const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-watching-'))

interface Wanted {
  more?: Partial<ConfigValues>
  kinds?: readonly DetectorKind[]
  sources?: readonly SourceHealth[]
  now?: () => number
  lookEveryMs?: number
  firstSaveMs?: number
}

function watch(
  logDir: string | null,
  { more = {}, kinds = [counter], sources = [], now = () => AT, lookEveryMs = 60_000, firstSaveMs = 2000 }: Wanted = {},
) {
  const logged: string[] = []
  const say = (_fields: object, message: string) => void logged.push(message)
  const log: Log = { debug: say, info: say, warn: say, error: say, child: () => log }
  const state = new State({ now, health: () => sources, sinks: () => [], self: () => ({}) as never, devices: null })
  const hub = new Hub({ state, log, onProcesses: () => undefined })
  const values = { ...loadConfig({ env: { XDG_CONFIG_HOME: '/nonexistent' } }).values, ...more }
  const watching = new Watching({ values, logDir, state, hub, log, kinds, lookEveryMs, firstSaveMs })
  onTestFinished(() => watching.close())
  hub.addSink(watching)
  const run = (ending: Partial<Run> = {}) =>
    hub.receiveRun({
      ...{ id: 'r', name: 'r', host: 'box', user: null, pid: null, gpus: [], worldSize: 1, totalSteps: null },
      ...{ startedAt: AT, endedAt: null, outcome: null, ending: null, provenance: 'live' },
      ...ending,
    })
  return { watching, state, hub, logged, run, values }
}

describe('more runs than there is room for', () => {
  it('degrades health and is said once in the log, and no longer when one has ended', async () => {
    const { watching, hub, run, logged } = watch(null, { more: { 'training.max_runs': 1 }, kinds: [lossNan], lookEveryMs: 5 })
    watching.resume()
    const step = (id: string, at = AT) =>
      hub.receiveSteps([{ ...NO_FIGURES, kind: 'step', at, run: id, rank: 0, step: 1, phaseSeconds: null, custom: null }])
    step('r')
    expect(watching.health()).toEqual({ state: 'ok', reason: null, runsNotFollowed: { loss_nan: 0 } })
    step('s')
    const reason = '1 training run is not followed by every detector: more than training.max_runs (1) report at once'
    expect(watching.health()).toEqual({ state: 'degraded', reason, runsNotFollowed: { loss_nan: 1 } })
    await expect.poll(() => logged).toEqual([`${reason}; raise it, or end runs that are not needed`])
    run({ endedAt: AT + 1, outcome: 'success' })
    step('s', AT + 2)
    expect(watching.health().state).toBe('ok')
    expect(logged).toHaveLength(1)
  })
})

describe('what the detectors have learned', () => {
  it('is taken up by the next start, and what held is said again', async () => {
    const dir = folder()
    const first = watch(dir)
    first.watching.resume()
    first.run()
    first.run()
    await first.watching.close()
    const second = watch(dir)
    expect(second.state.findings()).toEqual([])
    second.watching.resume()
    expect(second.state.findings()).toMatchObject([{ message: '2 steps' }])
    second.run()
    expect(second.state.findings()).toMatchObject([{ message: '3 steps' }])
    expect(second.logged).toEqual([])
  })

  it('is saved soon after a problem begins, without being asked, so that a kill does not lose it', async () => {
    const dir = folder()
    const { watching, run } = watch(dir)
    watching.resume()
    run()
    const saved = () => (existsSync(join(dir, 'detectors.json')) ? readFileSync(join(dir, 'detectors.json'), 'utf8') : '')
    expect(saved()).toBe('')
    await expect.poll(saved, { timeout: 10_000 }).toContain('"count":1')
  })

  it('adds up over lives that are too short to find anything: a hot GPU is noticed though the agent is killed every few seconds', async () => {
    const hot = (at: number): HubEvent => ({ type: 'tick', tick: tickOf(at, [gpuSample('GPU-0', at, { temperatureCelsius: 99 })]) })
    let dir = folder()
    const found: string[] = []
    for (let life = 0; life < 3; life++) {
      const { watching, state } = watch(dir, { kinds: [thermal], firstSaveMs: 20 })
      watching.resume()
      for (const second of [0, 1, 2]) watching.accept(hot(AT + life * 20_000 + second * 1000))
      found.push(...state.findings().map(({ severity }) => `${severity} in life ${life}`))
      await expect.poll(() => existsSync(join(dir, 'detectors.json'))).toBe(true)
      // A copy is what a kill leaves: this life goes on and may write again.
      const left = folder()
      cpSync(dir, left, { recursive: true })
      dir = left
    }
    expect(found).toEqual(['critical in life 1', 'critical in life 2'])
  })

  it('ends where its detector is switched off', async () => {
    const dir = folder()
    const first = watch(dir)
    first.watching.resume()
    first.run()
    await first.watching.close()
    const second = watch(dir, { more: { 'detectors.disabled': ['counter'] } })
    expect(second.watching.running).toEqual([])
    second.watching.resume()
    expect(second.state.findings()).toEqual([])
  })

  it.each(['{"version":1,"lastAt"', '[]', '{"version":7}', '{"version":1}', '\u0000\u0000', ''])(
    'is set aside when it is damaged (%j), and watching goes on',
    async (text) => {
      const dir = folder()
      writeFileSync(join(dir, 'detectors.json'), text)
      const { watching, state, logged, run } = watch(dir)
      expect(logged).toEqual(['the saved state of the detectors is damaged; it is set aside, and they start fresh'])
      const aside = readdirSync(dir).filter((name) => /^detectors-.*\.corrupt$/.test(name))
      expect(aside.map((name) => readFileSync(join(dir, name), 'utf8'))).toEqual([text])
      watching.resume()
      run()
      expect(state.findings()).toMatchObject([{ message: '1 steps' }])
      await watching.save()
      expect(JSON.parse(readFileSync(join(dir, 'detectors.json'), 'utf8'))).toMatchObject({
        version: 1,
        detectors: { counter: { count: 1 } },
      })
    },
  )

  it('is used as far as one detector can: another begins anew', () => {
    const dir = folder()
    const saved = { version: 1, lastAt: AT, detectors: { counter: { count: 'many' } }, active: [finding(5)] }
    writeFileSync(join(dir, 'detectors.json'), JSON.stringify(saved))
    const { watching, state, logged, run } = watch(dir)
    expect(logged).toEqual(['a detector cannot use its saved state; it starts fresh'])
    watching.resume()
    expect(state.findings()).toEqual([])
    run()
    expect(state.findings()).toMatchObject([{ message: '1 steps' }])
  })

  it('is not written over by an agent that never got to watch', async () => {
    const dir = folder()
    const first = watch(dir)
    first.watching.resume()
    first.run()
    await first.watching.save()
    const before = readFileSync(join(dir, 'detectors.json'), 'utf8')
    first.run()
    const second = watch(dir)
    await second.watching.close()
    expect(readFileSync(join(dir, 'detectors.json'), 'utf8')).toBe(before)
  })

  it('of simulated GPUs is kept apart, of a recording not at all, and nothing without a log', async () => {
    const dir = folder()
    for (const source of ['demo', 'replay:/somewhere']) {
      const { watching } = watch(dir, { more: { source } })
      watching.resume()
      await watching.save()
    }
    expect(readdirSync(dir)).toEqual(['detectors-demo.json'])
    const { watching } = watch(null)
    watching.resume()
    await watching.save()
    expect(existsSync('detectors.json')).toBe(false)
  })

  it('that cannot be written is said once', async () => {
    const file = join(folder(), 'a-file')
    writeFileSync(file, '')
    const { watching, logged } = watch(file)
    watching.resume()
    await watching.save()
    await watching.save()
    expect(logged.filter((message) => /cannot be saved/.test(message))).toHaveLength(1)
  })
})

it('a detector to switch off that does not exist is a wrong configuration', () => {
  expect(() => watch(null, { more: { 'detectors.disabled': ['crystal_ball'] } })).toThrow(Failure)
})

describe('a source that says that it is well and sends nothing', () => {
  const silent = sourceHealth({ since: AT - 600_000, lastSampleAt: AT - 300_000 })

  it('is a finding for everybody, and an alert of the same name', async () => {
    // Each look is 15 s after the one before, as the agent looks.
    let looks = 0
    const now = () => AT + 15_000 * Math.min(looks++, 2)
    const { watching, state, hub, values } = watch(null, { kinds: detectors, sources: [silent], now, lookEveryMs: 10 })
    const published: HubEvent[] = []
    const log: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined, child: () => log }
    const settings = { ...values, 'alerts.rules.source_stale': { for_seconds: 0 } }
    const alerts = createAlerts({
      ...{ dir: null, channels: new Map(), settings, state, log },
      ...{ now: () => AT, detectors: watching.running, sweepMs: 0 },
    })
    onTestFinished(() => alerts.close())
    hub.addSink(alerts)
    hub.addSink({
      name: 'stream',
      accept: (event) => void published.push(event),
      dropped: () => ({ count: 0, reason: null }),
      close: async () => undefined,
    })
    watching.resume()
    await expect.poll(() => state.findings().map(({ fingerprint }) => fingerprint)).toEqual(['source_stale|source=nvidia'])
    expect(published).toEqual([{ type: 'finding', finding: state.findings()[0] }])
    expect(alerts.list()).toMatchObject([{ fingerprint: 'source_stale|source=nvidia', state: 'firing', finding: state.findings()[0] }])
  })

  it('is not looked at before watching begins, nor after it ended, nor in the time of a recording', async () => {
    const early = watch(null, { kinds: detectors, sources: [silent], lookEveryMs: 5 })
    const played = watch(null, { kinds: detectors, sources: [{ ...silent, provenance: 'replay' }], lookEveryMs: 5 })
    played.watching.resume()
    const ended = watch(null, { kinds: detectors, sources: [silent], lookEveryMs: 50 })
    ended.watching.resume()
    await ended.watching.close()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect([early, played, ended].map(({ state }) => state.findings())).toEqual([[], [], []])
  })
})
