import { describe, expect, it } from 'vitest'
import type { HubEvent, Sink } from '../core/kinds.ts'
import { healthWith, processWith, sampleWith } from '../core/model.fixture.ts'
import type { GpuInfo, GpuSample, HostSample, ProcessInfo, Provenance, SourceHealth } from '../core/model.ts'
import { NO_FACTS, NO_HOST_READINGS } from '../core/record.ts'
import { Hub } from './hub.ts'
import { SILENT_LOG } from './one-look.ts'
import { State } from './state.ts'

const NOW = 1_760_000_000_000

function gpu(id: string, index: number, overrides: Partial<GpuInfo> = {}): GpuInfo {
  return {
    ...NO_FACTS,
    id,
    index,
    label: String(index),
    vendor: 'nvidia',
    provenance: 'live',
    name: `card ${id}`,
    memoryTotalBytes: 1000,
    ...overrides,
  }
}

function sample(id: string, at: number, pids: number[] = []): GpuSample {
  const processes = pids.map((pid) => processWith(pid, { memoryUsedBytes: 1 }))
  return sampleWith(id, at, { processes, utilizationRatio: 0.5 })
}

function who(pid: number, startedAt: number): ProcessInfo {
  return {
    pid,
    parentPid: 1,
    startedAt,
    user: 'alice',
    uid: 1000,
    name: 'python',
    executable: null,
    command: ['python'],
    state: 'S',
    cpuRatio: null,
    residentBytes: 1,
    container: null,
    pod: null,
    slurmJob: null,
  }
}

function hostSample(at: number, processes: ProcessInfo[]): HostSample {
  return {
    kind: 'host',
    at,
    hostname: 'box',
    ...NO_HOST_READINGS,
    cpuCount: 2,
    processes,
    processesReason: null,
  }
}

function health(source: string, state: SourceHealth['state'], provenance: Provenance = 'live'): SourceHealth {
  return healthWith(NOW, { source, state, provenance })
}

function house(devices: number[] | null = null) {
  const world = { now: NOW, health: [health('nvidia', 'ok'), health('amd', 'ok'), health('host', 'ok')] }
  const events: HubEvent[] = []
  const watched: (readonly number[])[] = []
  const state: State = new State({
    now: () => world.now,
    health: () => world.health,
    sinks: () => [],
    self: () => ({ version: '0', startedAt: 0, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }),
    devices: devices === null ? null : new Set(devices),
  })
  const hub = new Hub({ state, log: SILENT_LOG, onProcesses: (pids) => watched.push(pids) })
  hub.addSink({
    name: 'test',
    accept: (event) => void events.push(event),
  })
  const tick = (source: string, samples: (GpuSample | HostSample)[], provenance: Provenance = 'live') =>
    hub.receive({ source, provenance, at: world.now, samples })
  return { world, state, hub, events, watched, tick }
}

describe('state and hub', () => {
  it('numbers the cards of several vendors one after the other, and keeps the numbers', () => {
    const { state, hub } = house()
    hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n1', 1)])
    hub.receiveDevices('amd', [gpu('a0', 0, { vendor: 'amd' })])
    expect(state.devices().map((device) => [device.id, device.index, device.label])).toEqual([
      ['n0', 0, '0'],
      ['n1', 1, '1'],
      ['a0', 2, '2'],
    ])
  })

  it('gives the place of a card that only stood in to the real one, and speaks of no loss', () => {
    const { state, hub, events } = house()
    hub.receiveDevices('nvidia', [], [gpu('01:00.0', 0), gpu('02:00.0', 1)])
    expect(state.devices().map(({ id }) => id)).toEqual(['01:00.0', '02:00.0'])
    hub.receiveDevices('nvidia', [gpu('n0', 0)], [gpu('02:00.0', 1)])
    expect(state.devices().map(({ id, index }) => [id, index])).toEqual([
      ['n0', 0],
      ['02:00.0', 1],
    ])
    hub.receiveDevices('nvidia', [gpu('n0', 0)])
    expect(state.devices().map(({ id }) => id)).toEqual(['n0'])
    expect(events.filter(({ type }) => type === 'tick')).toEqual([])
  })

  it('keeps the row of a card that the driver no longer lists, marked lost, and the numbers of the others', () => {
    const { state, hub, events, tick } = house()
    hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n1', 1), gpu('n2', 2)])
    tick('nvidia', [sample('n0', NOW), sample('n1', NOW), sample('n2', NOW)])
    hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n2', 1)])
    tick('nvidia', [sample('n0', NOW + 1000), sample('n2', NOW + 1000)])
    const rows = state.gpus().map((view) => [view.info.id, view.info.index, view.sample?.state])
    expect(rows).toEqual([
      ['n0', 0, 'ok'],
      ['n1', 1, 'lost'],
      ['n2', 2, 'ok'],
    ])
    expect(state.gpus()[1]?.sample?.utilizationRatio).toBe(null)
    const happened = events.flatMap((event) => (event.type === 'tick' ? event.tick.events : []))
    expect(happened.map((event) => [event.event, event.gpu])).toEqual([['lost', 'n1']])
    hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n1', 1), gpu('n2', 2)])
    expect(state.events().at(-1)?.event).toBe('recovered')
  })

  it('drops MIG instances that were re-partitioned away', () => {
    const { state, hub } = house()
    const mig = (id: string, gpuInstanceId: number) =>
      gpu(id, 0, { label: `0:${gpuInstanceId}`, mig: { parentId: 'n0', gpuInstanceId, computeInstanceId: 0, profile: '1g.10gb' } })
    hub.receiveDevices('nvidia', [gpu('n0', 0), mig('m1', 1), mig('m2', 2)])
    expect(state.devices().map((device) => device.label)).toEqual(['0', '0:1', '0:2'])
    hub.receiveDevices('nvidia', [gpu('n0', 0), mig('m3', 5)])
    expect(state.devices().map((device) => device.label)).toEqual(['0', '0:5'])
  })

  it('calls a sample live only while its source is ok and it is young', () => {
    const { world, state, hub, tick } = house()
    hub.receiveDevices('nvidia', [gpu('n0', 0)])
    expect(state.gpus()[0]).toMatchObject({ sample: null, ageMs: null, live: false })
    tick('nvidia', [sample('n0', NOW)])
    expect(state.gpus()[0]).toMatchObject({ ageMs: 0, live: true })
    world.now = NOW + 6900
    expect(state.gpus()[0]).toMatchObject({ ageMs: 6900, live: true })
    world.now = NOW + 7100
    expect(state.gpus()[0]).toMatchObject({ ageMs: 7100, live: false })
    world.now = NOW + 100
    world.health = [health('nvidia', 'not_responding')]
    expect(state.gpus()[0]).toMatchObject({ ageMs: 100, live: false })
  })

  it.each([365 * 86_400_000, -365 * 86_400_000])('counts ages on when the clock is set by %d ms', (byMs) => {
    const { world, state, hub, tick } = house()
    hub.receiveDevices('nvidia', [gpu('n0', 0)])
    tick('nvidia', [sample('n0', NOW), hostSample(NOW, [])])
    world.now = NOW + 2000 + byMs
    state.clockSet(byMs)
    expect(state.gpus()[0]).toMatchObject({ ageMs: 2000, live: true })
    expect(state.host()).toMatchObject({ ageMs: 2000 })
    world.now += 5100
    expect(state.gpus()[0]).toMatchObject({ ageMs: 7100, live: false })
    tick('nvidia', [sample('n0', world.now)])
    expect(state.gpus()[0]).toMatchObject({ ageMs: 0, live: true })
  })

  it('measures the age of a recording by when it was played, not by when it was made', () => {
    const { world, state, hub, tick } = house()
    world.health = [health('replay', 'ok', 'replay')]
    hub.receiveDevices('replay', [gpu('r0', 0, { provenance: 'replay' })])
    tick('replay', [sample('r0', NOW - 86_400_000)], 'replay')
    world.now += 500
    expect(state.gpus()[0]).toMatchObject({ ageMs: 500, live: true })
  })

  it('keeps a recording of simulated GPUs marked as simulated, its steps and host figures too, and plays it all the same', () => {
    const { world, state, hub, events, tick } = house()
    world.health = [health('replay', 'ok', 'replay')]
    hub.receiveDevices('replay', [gpu('s0', 0, { provenance: 'simulated' }), gpu('r1', 1, { provenance: 'replay' })])
    const played = NOW - 86_400_000
    tick('replay', [sample('s0', played)], 'replay')
    tick('replay', [hostSample(played + 1, [])], 'replay')
    tick('replay', [sample('r1', played + 2)], 'replay')
    world.now += 500
    expect(events.flatMap((event) => (event.type === 'tick' ? [event.tick.provenance] : []))).toEqual(['simulated', 'simulated', 'replay'])
    expect(state.gpus()[0]).toMatchObject({ info: { provenance: 'simulated' }, ageMs: 500, live: true })
  })

  it('joins processes with who they are, and never with a later user of the same PID', () => {
    const { state, hub, tick } = house()
    hub.receiveDevices('nvidia', [gpu('n0', 0)])
    tick('host', [hostSample(NOW, [who(7, NOW - 60_000), who(8, NOW + 60_000)])])
    tick('nvidia', [sample('n0', NOW, [7, 8, 9])])
    expect(state.processes().map((process) => [process.pid, process.info?.user ?? null])).toEqual([
      [7, 'alice'],
      [8, null],
      [9, null],
    ])
  })

  it('takes from a simulation who its processes are, and nothing about the host', () => {
    const { world, state, hub, watched, tick } = house()
    world.health = [health('demo', 'ok', 'simulated'), health('host', 'ok')]
    hub.receiveDevices('demo', [gpu('s0', 0, { provenance: 'simulated' })])
    tick('demo', [{ ...hostSample(NOW, [who(7, NOW - 60_000)]), cpuCount: 96 }, sample('s0', NOW, [7])], 'simulated')
    expect(state.host()).toBeNull()
    tick('host', [hostSample(NOW, [{ ...who(7, NOW - 60_000), user: 'root' }])])
    tick('demo', [sample('s0', NOW + 1, [7])], 'simulated')
    expect(state.host()?.sample).toMatchObject({ hostname: 'box', cpuCount: 2 })
    expect(state.processes().map((process) => process.info?.user)).toEqual(['alice'])
    expect(watched).toEqual([])
  })

  it('asks for the owners of processes only when the set of processes changed', () => {
    const { hub, watched, tick } = house()
    hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n1', 1)])
    tick('nvidia', [sample('n0', NOW, [9, 7]), sample('n1', NOW, [7])])
    tick('nvidia', [sample('n0', NOW + 1, [7, 9]), sample('n1', NOW + 1, [7])])
    tick('nvidia', [sample('n0', NOW + 2, [7]), sample('n1', NOW + 2, [])])
    expect(watched).toEqual([[7, 9], [7]])
  })

  it('shows only the GPUs that were asked for', () => {
    const { state, hub, events, tick } = house([1])
    hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n1', 1)])
    tick('nvidia', [sample('n0', NOW), sample('n1', NOW)])
    expect(state.gpus().map((view) => view.info.id)).toEqual(['n1'])
    expect(events.flatMap((event) => (event.type === 'tick' ? event.tick.gpus.map((one) => one.gpu) : []))).toEqual(['n1'])
  })

  it('reports a card as lost in the tick that says so, and nothing about a lost card that is not shown', () => {
    for (const [devices, told] of [
      [null, ['n1']],
      [[0], []],
    ] as const) {
      const { hub, events, tick } = house(devices && [...devices])
      hub.receiveDevices('nvidia', [gpu('n0', 0), gpu('n1', 1)])
      tick('nvidia', [sample('n0', NOW), sample('n1', NOW)])
      hub.receiveDevices('nvidia', [gpu('n0', 0)])
      tick('nvidia', [sample('n0', NOW + 1000)])
      const lost = events.flatMap((event) =>
        event.type === 'tick' ? [event.tick.gpus.filter(({ state }) => state === 'lost').map((one) => one.gpu)] : [],
      )
      expect(lost).toEqual([[], told, told])
    }
  })

  it('publishes the moments of a fast replay one by one, in order', () => {
    const { hub, events, tick } = house()
    hub.receiveDevices('replay', [gpu('r0', 0)])
    tick('replay', [sample('r0', NOW), sample('r0', NOW + 100), sample('r0', NOW + 200)], 'replay')
    expect(events.flatMap((event) => (event.type === 'tick' ? [event.tick.at - NOW] : []))).toEqual([0, 100, 200])
  })

  it('goes on when a sink fails, and counts it', () => {
    const { hub, events, tick } = house()
    const broken: Sink = {
      name: 'broken',
      accept: () => {
        throw new Error('full')
      },
    }
    hub.addSink(broken)
    hub.receiveDevices('nvidia', [gpu('n0', 0)])
    tick('nvidia', [sample('n0', NOW)])
    expect(hub.sinkHealth().find((sink) => sink.name === 'broken')?.dropped).toBe(2)
    expect(events.length).toBe(2)
  })
})

describe('a recording that is moved', () => {
  it('starts over with the cards of its beginning, none of them lost, and who only follows is spared the way', () => {
    const { state, hub, events, tick } = house()
    const followed: string[] = []
    hub.addSink({ name: 'follower', accept: (event) => void followed.push(event.type) }, { skipsJumps: true })
    const playback = { state: 'playing', at: NOW, speed: 1, jumps: 0 } as const
    hub.receiveDevices('replay', [gpu('r0', 0), gpu('r1', 1)])
    tick('replay', [sample('r0', NOW), sample('r1', NOW)], 'replay')
    hub.restart('moved')
    expect(state.devices()).toEqual([])
    hub.receiveDevices('replay', [gpu('r0', 0)])
    tick('replay', [sample('r0', NOW - 5000)], 'replay')
    hub.receivePlayback({ ...playback, jumps: 1 })
    tick('replay', [sample('r0', NOW - 4000)], 'replay')
    expect(state.devices().map(({ id }) => id)).toEqual(['r0'])
    expect(events.flatMap((event) => (event.type === 'tick' ? event.tick.events : []))).toEqual([])
    expect(followed).toEqual(['devices', 'tick', 'playback', 'tick'])
  })

  it('counts a source that was replaced as another jump', () => {
    const { hub, events } = house()
    const playback = { state: 'playing', at: NOW, speed: 1, jumps: 4 } as const
    hub.receivePlayback(playback)
    hub.restart('replaced')
    hub.receivePlayback({ ...playback, jumps: 0 })
    expect(events.flatMap((event) => (event.type === 'playback' ? event.playback.jumps : []))).toEqual([4, 5])
  })
})
