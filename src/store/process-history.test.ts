import { describe, expect, it } from 'vitest'
import type { HubEvent } from '../core/kinds.ts'
import type { ProcessInfo, ProcessView } from '../core/model.ts'
import { ProcessHistory } from './process-history.ts'
import { describeSink, GPU, gpuSample, NOON } from './sink.contract.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const MIB = 1024 * 1024
const create = (hours = 24) => new ProcessHistory({ 'history.hours': hours })

function info(pid: number, startedAt: number | null, more: Partial<ProcessInfo> = {}): ProcessInfo {
  const none = { parentPid: null, uid: null, executable: null, state: null, cpuRatio: null, residentBytes: null }
  return {
    pid,
    startedAt,
    user: 'ada',
    name: 'python',
    command: ['python', 'train.py'],
    container: null,
    pod: null,
    slurmJob: null,
    ...none,
    ...more,
  }
}

function view(pid: number, mib: number | null, who: ProcessInfo | null = info(pid, NOON - MINUTE), gpu = GPU): ProcessView {
  const none = { smRatio: null, memoryRatio: null, encoderRatio: null, decoderRatio: null }
  return { pid, type: 'compute', memoryUsedBytes: mib === null ? null : mib * MIB, ...none, gpu, info: who }
}

function tick(at: number, ...processes: readonly ProcessView[]): HubEvent {
  const gpus = [...new Set([GPU, ...processes.map(({ gpu }) => gpu)])].map((gpu) => gpuSample(at, {}, gpu))
  return { type: 'tick', tick: { seq: 1, at, source: 'test', provenance: 'live', gpus, processes, host: null, events: [] } }
}

/** Columns in MiB by PID. */
function columns(history: ProcessHistory, from: number, to: number, gpu = GPU) {
  const { at, stepMs, processes } = history.query({ gpu, from, to })
  const inMib = (column: readonly (number | null)[]) => column.map((bytes) => (bytes === null ? null : bytes / MIB))
  return { at, stepMs, ...Object.fromEntries(processes.map(({ pid, memoryUsedBytes }) => [pid, inMib(memoryUsedBytes)])) }
}

describeSink('process-history', async () => create())

describe('history of processes', () => {
  it('has the most of every ten seconds, and null where a process was not there', () => {
    const history = create()
    for (let second = 0; second < 40; second++) {
      const first = second < 30 ? [view(1, 100 + second)] : []
      const second2 = second >= 10 ? [view(2, second === 15 ? 900 : 500)] : []
      history.accept(tick(NOON + second * SECOND, ...first, ...second2))
    }
    expect(columns(history, NOON - HOUR, NOON + HOUR)).toEqual({
      at: [0, 10, 20, 30].map((second) => NOON + second * SECOND),
      stepMs: 10_000,
      1: [109, 119, 129, null],
      2: [null, 900, 500, 500],
    })
    expect(columns(history, NOON + 30 * SECOND, NOON + 35 * SECOND)).toEqual({ at: [NOON + 30 * SECOND], stepMs: 10_000, 2: [500] })
    expect(columns(history, NOON - HOUR, NOON - MINUTE)).toEqual({ at: [], stepMs: 10_000 })
    expect(columns(history, NOON, NOON + HOUR, 'GPU-other')).toEqual({ at: [], stepMs: 10_000 })
  })

  it('says who they are, as soon as that is known', () => {
    const history = create()
    history.accept(tick(NOON, view(1, 100, null)))
    history.accept(tick(NOON + SECOND, view(1, 100, info(1, NOON - MINUTE, { command: ['python', 'x'.repeat(600)] }))))
    const [process, another] = history.query({ gpu: GPU, from: NOON, to: NOON + MINUTE }).processes
    expect(process).toMatchObject({ pid: 1, startedAt: NOON - MINUTE, user: 'ada', name: 'python' })
    expect(process?.command).toHaveLength(500)
    expect(another).toBeUndefined()
    history.accept(tick(NOON + 2 * SECOND, view(3, null)))
    expect(history.query({ gpu: GPU, from: NOON, to: NOON + MINUTE }).processes).toHaveLength(1)
  })

  it('distinguishes a reused PID from the one before, and not one that is looked up again', () => {
    const history = create()
    history.accept(tick(NOON, view(1, 100, info(1, NOON - HOUR))))
    history.accept(tick(NOON + 10 * SECOND, view(1, 200, info(1, NOON - HOUR + 1000))))
    history.accept(tick(NOON + 15 * SECOND, view(1, 250, null)))
    history.accept(tick(NOON + 20 * SECOND, view(1, 300, info(1, NOON + 18 * SECOND))))
    history.accept(tick(NOON + 10 * MINUTE, view(1, 400, null)))
    const { processes } = history.query({ gpu: GPU, from: NOON, to: NOON + 10 * MINUTE })
    expect(processes.map(({ startedAt }) => startedAt)).toEqual([NOON - HOUR + 1000, NOON + 18 * SECOND, null])
    expect(processes[0]?.memoryUsedBytes.slice(0, 4)).toEqual([100 * MIB, 250 * MIB, null, null])
    expect(processes[1]?.memoryUsedBytes.slice(0, 4)).toEqual([null, null, 300 * MIB, null])
  })

  it('has the most of every minute beyond two hours, and never too many points', () => {
    const history = create(168)
    for (let minute = 0; minute < 3 * 60; minute++)
      for (const second of [0, 30])
        history.accept(tick(NOON + minute * MINUTE + second * SECOND, view(1, minute * 10 + (second === 0 ? 5 : 0))))
    const long = history.query({ gpu: GPU, from: NOON, to: NOON + 3 * HOUR })
    expect([long.stepMs, long.at.length, long.processes[0]?.memoryUsedBytes[7]]).toEqual([MINUTE, 180, 75 * MIB])
    const short = history.query({ gpu: GPU, from: NOON + 2 * HOUR, to: NOON + 3 * HOUR })
    expect([short.stepMs, short.at[0]]).toEqual([10_000, NOON + 2 * HOUR])
    for (let hour = 4; hour < 168; hour++) history.accept(tick(NOON + hour * HOUR, view(1, 1)))
    const week = history.query({ gpu: GPU, from: 0, to: NOON + 168 * HOUR })
    expect(week.stepMs).toBe(7 * MINUTE)
    expect(week.at.length).toBeLessThanOrEqual(1501)
    expect(Math.max(...(week.processes[0]?.memoryUsedBytes ?? []).map(Number))).toBe(1795 * MIB)
  })

  it('forgets who ended first when there are too many, and refuses more when none has', () => {
    const history = create()
    history.accept(tick(NOON, view(1000, 1)))
    history.accept(tick(NOON + SECOND, view(1001, 1)))
    const many = Array.from({ length: 63 }, (_, pid) => view(pid + 1, 1))
    history.accept(tick(NOON + 2 * SECOND, ...many))
    const pids = () => history.query({ gpu: GPU, from: NOON, to: NOON + HOUR }).processes.map(({ pid }) => pid)
    expect([pids().length, pids().includes(1000), pids().includes(1001)]).toEqual([64, false, true])
    history.accept(tick(NOON + 3 * SECOND, ...many, view(2000, 1), view(2001, 1)))
    expect([pids().length, pids().includes(1001), pids().includes(2000), pids().includes(2001)]).toEqual([64, false, true, false])
    expect(history.dropped()).toEqual({ count: 1, reason: expect.stringContaining('64 processes') })
  })

  it('forgets what is older than it is to remember', () => {
    const history = create(1)
    history.accept(tick(NOON, view(1, 1), view(2, 1, null, 'GPU-gone')))
    history.accept(tick(NOON + 2 * HOUR, view(3, 1)))
    history.accept(tick(NOON + 2 * HOUR + MINUTE, view(3, 1)))
    expect(history.query({ gpu: GPU, from: 0, to: NOON + 3 * HOUR }).processes.map(({ pid }) => pid)).toEqual([3])
    expect(history.query({ gpu: 'GPU-gone', from: 0, to: NOON + 3 * HOUR }).at).toEqual([])
  })

  it('stays below 24 MB with 8 GPUs of 64 processes each, even for a week, and never holds more than 512', () => {
    for (const [hours, most] of [
      [24, 4.5e6],
      [168, 24e6],
    ] as const) {
      const history = create(hours)
      for (let round = 0; round < 3; round++) {
        const processes = Array.from({ length: 9 * 64 }, (_, n) => view(round * 1000 + n, 1, null, `GPU-${n % 9}`))
        history.accept(tick(NOON + round * MINUTE, ...processes))
      }
      expect(history.bytes).toBeLessThan(most)
      expect(history.bytes).toBe(512 * (720 + hours * 60) * 4)
    }
  })

  it('goes on when the clock is set back', () => {
    const history = create()
    history.accept(tick(NOON + HOUR, view(1, 900)))
    history.accept(tick(NOON, view(1, 100)))
    history.accept(tick(NOON + 10 * SECOND, view(1, 200)))
    expect(columns(history, NOON, NOON + 2 * HOUR)).toMatchObject({ 1: [100, 200] })
    history.accept(tick(Number.NaN, view(1, 1)))
    history.accept(tick(Number.POSITIVE_INFINITY, view(1, 1)))
  })
})
