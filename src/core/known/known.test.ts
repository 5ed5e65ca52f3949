import { describe, expect, it } from 'vitest'
import type { AlertsEvent, AlertView } from '../alert-contract.ts'
import type { StreamEvent } from '../kinds.ts'
import type { Finding, GpuEvent, GpuInfo, GpuSample, Run, SourceHealth, TrainingStep } from '../model.ts'
import { AgentClock } from './agent-clock.ts'
import { KnownAlerts } from './alerts.ts'
import { countBySeverity, KnownFindings, worstSeverity } from './findings.ts'
import { Known } from './known.ts'
import { askPicture, type Picture } from './picture.ts'
import { revived } from './revive.ts'
import { isRunning, KnownRuns } from './runs.ts'

const NOW = 1_760_000_000_000

const finding = (fingerprint: string, more: Partial<Finding> = {}) =>
  ({ fingerprint, state: 'active', severity: 'warning', since: NOW, message: fingerprint, ...more }) as Finding
const gpu = (id: string, index: number, more: Partial<GpuInfo> = {}) =>
  ({ id, index, label: String(index), vendor: 'nvidia', provenance: 'live', mig: null, ...more }) as GpuInfo
const sample = (id: string, at: number) => ({ kind: 'gpu', gpu: id, at, state: 'ok' }) as GpuSample
const health = (more: Partial<SourceHealth> = {}) =>
  ({ source: 'nvidia', state: 'ok', provenance: 'live', intervalMs: 1000, deadlineMs: 5000, ...more }) as SourceHealth
const xid = (at: number, code: number) => ({ kind: 'event', at, gpu: 'a', event: 'xid', code, message: 'fell' }) as GpuEvent
const tick = (at: number, ids: readonly string[], events: readonly GpuEvent[] = [], source = 'nvidia'): StreamEvent => ({
  type: 'tick',
  tick: { seq: 1, at, source, provenance: 'live', gpus: ids.map((id) => sample(id, at)), processes: [], host: null, events },
})
const picture = (more: Partial<Picture> = {}): Picture => ({
  ...{
    at: NOW,
    hostname: 'box',
    health: [health()],
    gpus: [],
    processes: [],
    host: null,
    findings: [],
    runs: [],
    events: [],
    alerts: null,
  },
  ...more,
})

describe('GPUs', () => {
  it('stand by number, their instances behind them, whatever order they came in', () => {
    const known = new Known()
    const mig = (instance: number) => ({ parentId: 'a', gpuInstanceId: instance, computeInstanceId: 0, profile: null })
    const devices = [gpu('b', 1), gpu('a2', 0, { mig: mig(2) }), gpu('a1', 0, { mig: mig(1) }), gpu('a', 0)]
    known.accept({ type: 'devices', devices }, NOW)
    expect(known.gpus(NOW).map(({ info }) => info.id)).toEqual(['a', 'a1', 'a2', 'b'])
  })

  it('are live while their source is well and their sample young, known by a picture or by ticks', () => {
    for (const from of ['picture', 'tick'] as const) {
      const known = new Known()
      const view = { info: gpu('a', 0), sample: sample('a', NOW), ageMs: 0, live: true }
      if (from === 'picture') known.begin(picture({ gpus: [view] }), NOW)
      else {
        known.accept({ type: 'health', health: [health()] }, NOW)
        known.accept({ type: 'devices', devices: [view.info] }, NOW)
        known.accept(tick(NOW, ['a']), NOW)
      }
      const live = (now: number) => known.gpus(now)[0]?.live
      expect([live(NOW), live(NOW + 7000), live(NOW + 7001)], from).toEqual([true, true, false])
      known.isLinked = false
      expect(live(NOW)).toBe(false)
      known.isLinked = true
      known.accept({ type: 'health', health: [health({ state: 'crashed' })] }, NOW)
      expect(live(NOW)).toBe(false)
    }
  })

  it('of a recording grow old from when they were played, and its moment is the present', () => {
    const known = new Known()
    known.accept({ type: 'health', health: [health({ source: 'replay', provenance: 'replay' })] }, NOW)
    known.accept({ type: 'devices', devices: [gpu('a', 0, { provenance: 'simulated' })] }, NOW)
    known.accept(tick(5000, ['a'], [], 'replay'), NOW)
    expect(known.gpus(NOW + 500)[0]).toMatchObject({ ageMs: 500, live: true })
    expect([known.present(NOW + 500), known.provenance, known.isPlayback]).toEqual([5000, 'simulated', true])
  })

  it('and all else of a recording that starts over are forgotten', () => {
    const known = new Known()
    known.accept({ type: 'health', health: [health({ source: 'replay', provenance: 'replay' })] }, NOW)
    known.accept({ type: 'devices', devices: [gpu('a', 0, { provenance: 'replay' })] }, NOW)
    known.accept(tick(5000, ['a'], [xid(5000, 79)], 'replay'), NOW)
    known.accept({ type: 'finding', finding: finding('hot') }, NOW)
    known.accept({ type: 'run', run: { id: 'r', name: 'r', endedAt: null } as Run }, NOW)
    known.accept({ type: 'steps', steps: [{ run: 'r', rank: 0, at: 5000, step: 3 } as TrainingStep], provenance: 'replay' }, NOW)
    known.accept({ type: 'restart' }, NOW)
    expect([known.gpus(NOW), known.events, known.findings.list, [...known.runs.values()]]).toEqual([[], [], [], []])
    expect([known.playedAt, known.runs.announced.size, known.runs.latest.size]).toEqual([null, 0, 0])
    // It goes on as if it had just begun.
    known.accept({ type: 'devices', devices: [gpu('a', 0, { provenance: 'replay' })] }, NOW)
    known.accept(tick(1000, ['a'], [], 'replay'), NOW)
    expect(known.playedAt).toBe(1000)
  })

  it('have each event once, also when a picture holds what waited in the stream', () => {
    const known = new Known()
    known.begin(picture({ gpus: [{ info: gpu('a', 0), sample: null, ageMs: null, live: false }], events: [xid(1, 79), xid(2, 48)] }), NOW)
    known.accept(tick(2, [], [xid(2, 48), xid(2, 63)]), NOW)
    expect(known.events.map(({ code }) => code)).toEqual([79, 48, 63])
    for (let at = 3; at < 400; at++) known.accept(tick(at, [], [xid(at, 13)]), NOW)
    expect(known.events.length).toBe(256)
    expect(known.events.at(-1)?.at).toBe(399)
  })
})

describe('findings', () => {
  it('stand worst first, then the latest, the same whatever order they came in', () => {
    const all = [finding('d', { severity: 'info' }), finding('a'), finding('b'), finding('c', { since: NOW + 1 })]
    const worst = finding('e', { severity: 'critical', since: 0 })
    for (const list of [
      [...all, worst],
      [worst, ...all.toReversed()],
    ]) {
      const known = new KnownFindings()
      for (const one of list) known.accept(one)
      expect(known.list.map(({ fingerprint }) => fingerprint)).toEqual(['e', 'c', 'a', 'b', 'd'])
      expect(countBySeverity(known.list)).toEqual({ critical: 1, warning: 3, info: 1 })
      expect(worstSeverity(known.list)).toBe('critical')
    }
    expect(worstSeverity([])).toBe(null)
  })

  it('that ended while nobody listened are gone with the next picture', () => {
    const known = new Known()
    known.begin(picture({ findings: [finding('a'), finding('b')] }), NOW)
    known.begin(picture({ findings: [finding('b')] }), NOW)
    expect(known.findings.list.map(({ fingerprint }) => fingerprint)).toEqual(['b'])
    known.findings.accept(finding('b', { state: 'resolved' }))
    known.findings.accept(finding('never', { state: 'resolved' }))
    expect([known.findings.list, known.findings.resolved.map(({ fingerprint }) => fingerprint)]).toEqual([[], ['b']])
  })
})

describe('alerts', () => {
  const alert = (fingerprint: string, state: AlertView['state'], more: Partial<AlertView> = {}) =>
    ({ fingerprint, state, silence: null, finding: finding(fingerprint), ...more }) as AlertView
  const event = (at: number, alerts: readonly AlertView[], gone: readonly string[] = []): AlertsEvent => ({
    ...{ type: 'alerts', at, alerts, gone },
    hasMore: false,
    silencesChanged: false,
  })
  const answer = { at: 1000, alerts: [alert('a', 'firing'), alert('b', 'pending')] }
  const states = (known: KnownAlerts, findings = new KnownFindings()) =>
    Object.fromEntries((known.list(findings) ?? []).map(({ fingerprint, state }) => [fingerprint, state]))

  it('are none before the first answer, and where alerts are off', () => {
    const known = new KnownAlerts()
    known.accept(event(900, [alert('a', 'firing')]))
    expect(known.list(new KnownFindings())).toBe(null)
    known.answer(answer)
    known.answer(null)
    expect(known.list(new KnownFindings())).toBe(null)
  })

  it('take what changed, what is new and what is gone, in the order in which it came', () => {
    const known = new KnownAlerts()
    known.answer(answer)
    known.accept(event(1500, [alert('b', 'firing'), alert('c', 'pending')]))
    known.accept(event(2000, [alert('a', 'resolved')], ['c']))
    known.accept(event(2500, [alert('b', 'firing', { silence: 's1' })]))
    expect(known.list(new KnownFindings())).toMatchObject([
      { fingerprint: 'b', state: 'firing', silence: 's1' },
      { fingerprint: 'a', state: 'resolved' },
    ])
  })

  it('do not go back behind what is newer, be it the answer or the event', () => {
    const known = new KnownAlerts()
    known.answer(answer)
    known.accept(event(999, [alert('a', 'pending')], ['b']))
    expect(states(known)).toEqual({ a: 'firing', b: 'pending' })
    known.accept(event(1200, [alert('a', 'resolved')], ['b']))
    known.answer({ ...answer, at: 1100 })
    expect(states(known)).toEqual({ a: 'resolved' })
    known.answer({ at: 1300, alerts: [alert('b', 'firing')] })
    expect(states(known)).toEqual({ b: 'firing' })
  })

  it('begin when their finding does and say what it says, at the severity of their rule', () => {
    const [known, findings] = [new KnownAlerts(), new KnownFindings()]
    known.answer({ at: 1000, alerts: [alert('a', 'firing', { finding: finding('a', { severity: 'critical' }) })] })
    findings.accept(finding('a', { since: NOW + 5, message: 'hotter' }))
    expect(known.list(findings)?.[0]?.finding).toMatchObject({ since: NOW + 5, message: 'hotter', severity: 'critical' })
    expect(known.list(findings)).toBe(known.list(findings))
    findings.accept(finding('a', { state: 'resolved' }))
    expect(known.list(findings)?.[0]?.finding).toMatchObject({ since: NOW, message: 'a' })
  })
})

describe('runs', () => {
  const step = (run: string, rank: number, at: number) => ({ kind: 'step', run, rank, at, step: at }) as TrainingStep
  const run = (id: string, endedAt: number | null = null) => ({ id, name: `name of ${id}`, gpus: [], endedAt }) as unknown as Run

  it('have the latest step of their lowest rank, and end', () => {
    const known = new KnownRuns()
    known.acceptSteps([step('r', 3, 1), step('r', 1, 2), step('r', 2, 3), step('r', 1, 4)])
    expect([...known.latest.values()].map(({ rank, at }) => [rank, at])).toEqual([[1, 4]])
    const one = () => [...known.values()].map((each) => isRunning(each, 120_005))
    expect(one()).toEqual([false])
    known.acceptRun(run('r'))
    expect(one()).toEqual([true])
    known.acceptRun(run('r', 9))
    expect(one()).toEqual([false])
    known.begin([run('other')])
    expect([...known.announced.keys(), ...known.latest.keys()]).toEqual(['other'])
  })
})

describe('the time of the agent', () => {
  it('is set by its snapshot, and again by its ticks when a clock is set', () => {
    let own = 50
    const clock = new AgentClock(() => own)
    clock.hear(tick(99_999_999, ['a']))
    expect(clock.now()).toBe(50)
    clock.set(1000)
    own += 10_000
    clock.hear(tick(10_500, ['a']))
    expect(clock.now()).toBe(11_000)
    clock.hear(tick(11_200, ['a']))
    expect(clock.now()).toBe(11_200)
    own += 3_600_000
    clock.hear(tick(5000, [], [xid(5000, 79)]))
    expect(clock.now()).toBe(3_611_200)
    clock.hear(tick(12_000, ['a']))
    expect(clock.now()).toBe(12_000)
  })
})

describe('what came as JSON', () => {
  it('has its NaN back wherever a step can hold one, and no run is taken for a figure', () => {
    const given = { run: 'NaN', loss: 'NaN', gradientNorm: '-Infinity', step: 1, phaseSeconds: null, custom: { accuracy: 'NaN', other: 2 } }
    const event = { type: 'steps', steps: [given], provenance: 'live' } as unknown as StreamEvent
    expect(revived(event)).toMatchObject({
      steps: [{ run: 'NaN', loss: Number.NaN, gradientNorm: Number.NEGATIVE_INFINITY, custom: { accuracy: Number.NaN, other: 2 } }],
    })
  })

  it('is a picture without alerts where they are switched off, and none where the agent fails', async () => {
    const ask = (refused: string, status: number) =>
      askPicture(async <Answer>(path: string) => {
        if (path === refused) throw Object.assign(new Error('no'), { status })
        return { at: NOW, runs: [], alerts: [] } as Answer
      })
    await expect(ask('/api/v1/alerts', 503)).resolves.toMatchObject({ alerts: null, at: NOW })
    await expect(ask('/api/v1/runs', 404)).resolves.toMatchObject({ runs: [], alerts: { alerts: [] } })
    await expect(ask('/api/v1/alerts', 500)).rejects.toThrow('no')
    await expect(ask('/api/v1/gpus', 404)).rejects.toThrow('no')
  })
})
