import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HistoryAnswer, HistoryQuery } from '../core/kinds.ts'
import type { GpuField, GpuReadings } from '../core/model.ts'
import { GPU_FIELDS } from '../core/record.ts'
import { createHistory, type MemoryHistory } from './history.ts'
import { describeSink, GPU, gpuInfo, gpuSample, NOON, tickEvent } from './sink.contract.ts'
import { MAX_POINTS } from './steps.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const history = (samples = 300, hours = 24) => createHistory({ 'history.samples': samples, 'history.hours': hours })

describeSink('history', async () => history())

function feed(target: MemoryHistory, at: number, readings: Partial<GpuReadings>, gpu = GPU): void {
  target.accept(tickEvent(at, [gpuSample(at, readings, gpu)]))
}

function ask(target: MemoryHistory, query: Partial<HistoryQuery>): HistoryAnswer {
  return target.query({ gpu: GPU, fields: ['powerWatts'], from: NOON, to: NOON + 24 * HOUR, stepMs: null, ...query })
}

describe('at full rate', () => {
  it('gives every sample as it was, null where there was no reading', () => {
    const target = history()
    feed(target, NOON, { powerWatts: 0, memoryUsedBytes: 85_899_345_921 })
    feed(target, NOON + SECOND, { powerWatts: null, memoryUsedBytes: 85_899_345_923 })
    feed(target, NOON + 2 * SECOND, { powerWatts: 320.25 })
    expect(ask(target, { fields: ['powerWatts', 'memoryUsedBytes', 'fanRatio'] })).toEqual({
      gpu: GPU,
      fields: ['powerWatts', 'memoryUsedBytes', 'fanRatio'],
      stepMs: 0,
      data: [
        [NOON, NOON + SECOND, NOON + 2 * SECOND],
        [0, null, 320.25],
        [85_899_345_921, 85_899_345_923, null],
        [null, null, null],
      ],
      min: null,
      max: null,
    })
  })

  it('breaks the line with one null where samples are missing', () => {
    const target = history()
    for (const second of [0, 1, 2, 4, 60, 61]) feed(target, NOON + second * SECOND, { powerWatts: second })
    const { data } = ask(target, {})
    expect(data[0]).toEqual([0, 1, 2, 4, 5, 60, 61].map((second) => NOON + second * SECOND))
    expect(data[1]).toEqual([0, 1, 2, 4, null, 60, 61])
  })

  it('keeps to the range, both ends included', () => {
    const target = history()
    for (let second = 0; second < 10; second++) feed(target, NOON + second * SECOND, { powerWatts: second })
    expect(ask(target, { from: NOON + 3 * SECOND, to: NOON + 5 * SECOND }).data[1]).toEqual([3, 4, 5])
    expect(ask(target, { from: NOON + 3500, to: NOON + 5500 }).data[1]).toEqual([4, 5])
    expect(ask(target, { from: NOON + HOUR, to: NOON + 2 * HOUR }).data).toEqual([[], []])
    expect(ask(target, { from: NOON + 5, to: NOON }).data).toEqual([[], []])
    expect(ask(target, { gpu: 'GPU-unknown' }).data).toEqual([[], []])
  })

  it('sums up to the step that was asked for, null for a step without samples', () => {
    const target = history()
    for (const second of [0, 1, 2, 3, 9]) feed(target, NOON + second * SECOND, { powerWatts: second })
    const answer = ask(target, { stepMs: 3 * SECOND })
    expect(answer.stepMs).toBe(3 * SECOND)
    expect(answer.data[0]).toEqual([0, 3, 6, 9].map((second) => NOON + second * SECOND))
    expect(answer.data[1]).toEqual([1, 3, null, 9])
    expect(answer.min).toEqual([[0, 3, null, 9]])
    expect(answer.max).toEqual([[2, 3, null, 9]])
  })

  it('holds the last five minutes also at ten samples a second, and no more than that', () => {
    const target = history()
    for (let tenth = 0; tenth < 6000; tenth++) feed(target, NOON + tenth * 100, { powerWatts: tenth })
    const end = NOON + 10 * MINUTE - 100
    const answer = ask(target, { from: end - 5 * MINUTE, to: end })
    expect(answer.stepMs).toBe(0)
    expect(answer.data[1]).toEqual(Array.from({ length: 3001 }, (_, index) => 2999 + index))
    expect(ask(target, { from: NOON, to: end }).stepMs).toBe(MINUTE)
    expect(target.bytes()).toBeLessThan(500_000)
  })

  it('holds the last five minutes at one sample a second wherever the minute begins', () => {
    for (let second = 0; second < 60; second += 7) {
      const target = history()
      const end = NOON + 20 * MINUTE + second * SECOND
      for (let at = NOON; at <= end; at += SECOND) feed(target, at, { powerWatts: 1 })
      expect(ask(target, { from: end + 900 - 5 * MINUTE, to: end + 900 }).stepMs, `second ${second}`).toBe(0)
      expect(ask(target, { from: end - 5 * MINUTE, to: end }).data[0]).toHaveLength(301)
    }
  })

  it('follows a clock that is set back', () => {
    const target = history(10)
    for (const second of [0, 1, 2, 3600, 3601, 3, 4]) feed(target, NOON + second * SECOND, { powerWatts: second })
    expect(ask(target, {}).data[1]).toEqual([0, 1, 2, 3, 4])
    expect(ask(target, { stepMs: MINUTE }).data[0]).toEqual([NOON])
  })
})

describe('by the minute', () => {
  const target = history(60)
  // A saw tooth: 0 to 59 in every minute, plus the number of the minute.
  for (let second = 0; second < 3 * 3600; second++) {
    if (Math.floor(second / 60) === 5) continue
    feed(target, NOON + second * SECOND, { powerWatts: (second % 60) + Math.floor(second / 60), memoryUsedBytes: 80 * 2 ** 30 + second })
  }

  it('answers for what the samples no longer reach, with the extremes', () => {
    const answer = ask(target, { to: NOON + 10 * MINUTE - 1 })
    expect(answer.stepMs).toBe(MINUTE)
    expect(answer.data[0]).toEqual(Array.from({ length: 10 }, (_, minute) => NOON + minute * MINUTE))
    expect(answer.data[1]).toEqual([0, 1, 2, 3, 4, null, 6, 7, 8, 9].map((minute) => (minute === null ? null : minute + 29.5)))
    expect(answer.min?.[0]?.[3]).toBe(3)
    expect(answer.max?.[0]?.[3]).toBe(62)
  })

  it('keeps byte counts to the byte', () => {
    const answer = ask(target, { fields: ['memoryUsedBytes'], to: NOON })
    expect(answer.data[1]).toEqual([80 * 2 ** 30 + 29.5])
    expect(answer.min).toEqual([[80 * 2 ** 30]])
    expect(answer.max).toEqual([[80 * 2 ** 30 + 59]])
  })

  it('does not make less than nothing of a zero', () => {
    const idle = history(2)
    feed(idle, NOON, { memoryUsedBytes: 0 })
    for (let second = 1; second < 60; second++) feed(idle, NOON + second * SECOND, { memoryUsedBytes: 82_083_166_221 + second })
    feed(idle, NOON + MINUTE, { memoryUsedBytes: 1 })
    expect(ask(idle, { fields: ['memoryUsedBytes'], to: NOON, stepMs: MINUTE }).min).toEqual([[0]])
  })

  it('sums minutes up to a longer step and includes the minute in the making', () => {
    const answer = ask(target, { from: NOON, stepMs: 45 * MINUTE })
    expect(answer.stepMs).toBe(45 * MINUTE)
    expect(answer.data[0]).toEqual([0, 45, 90, 135].map((minute) => NOON + minute * MINUTE))
    expect(answer.max?.[0]).toEqual([44 + 59, 89 + 59, 134 + 59, 179 + 59])
    expect(answer.data[1]?.[1]).toBeCloseTo(67 + 29.5, 9)
  })

  it('forgets what is older than its hours', () => {
    const short = history(2, 1)
    for (let minute = 0; minute < 200; minute++) feed(short, NOON + minute * MINUTE, { powerWatts: minute })
    const { data } = ask(short, {})
    expect(data[0]?.length).toBeGreaterThanOrEqual(60)
    expect(data[0]?.length).toBeLessThanOrEqual(61)
    expect(data[1]?.at(-1)).toBe(199)
  })
})

describe('bounds', () => {
  const everything = Object.fromEntries(GPU_FIELDS.map((field) => [field, 1])) as Partial<GpuReadings>

  it('takes at most 2.3 MB for a GPU that reports everything, and less for one whose readings stand still or are missing', () => {
    const full = history()
    const still = history()
    const sparse = history()
    for (let minute = 0; minute < 3; minute++) {
      feed(full, NOON + minute * MINUTE, everything)
      feed(full, NOON + minute * MINUTE + SECOND, Object.fromEntries(GPU_FIELDS.map((field) => [field, 2])))
      feed(still, NOON + minute * MINUTE, everything)
      feed(sparse, NOON + minute * MINUTE, { powerWatts: 1, temperatureCelsius: 40 })
    }
    expect(full.bytes()).toBeLessThan(2.3e6)
    expect(still.bytes()).toBeLessThan(1.5e6)
    expect(sparse.bytes()).toBeLessThan(100_000)
  })

  it('forgets a GPU that is gone for a day and not listed', () => {
    const target = history()
    target.accept({ type: 'devices', devices: [gpuInfo('GPU-here', 0)] })
    feed(target, NOON, { powerWatts: 1 }, 'GPU-here')
    feed(target, NOON, { powerWatts: 1 }, 'GPU-gone')
    feed(target, NOON + 25 * HOUR, { powerWatts: 1 }, 'GPU-other')
    expect(ask(target, { gpu: 'GPU-here' }).data[0]).toHaveLength(1)
    expect(ask(target, { gpu: 'GPU-gone' }).data[0]).toHaveLength(0)
  })

  it('remembers 128 GPUs: one that is gone makes room, one that is listed does not', () => {
    const target = history()
    const ids = Array.from({ length: 129 }, (_, index) => `GPU-${index}`)
    ids.slice(0, 128).forEach((id, index) => {
      feed(target, NOON + index, { powerWatts: 1 }, id)
    })
    feed(target, NOON + 1000, { powerWatts: 1 }, 'GPU-128')
    expect(target.dropped().count).toBe(0)
    expect(ask(target, { gpu: 'GPU-0' }).data[0]).toHaveLength(0)
    target.accept({ type: 'devices', devices: ids.slice(1).map((id, index) => gpuInfo(id, index)) })
    feed(target, NOON + 2000, { powerWatts: 1 }, 'GPU-0')
    expect(target.dropped()).toEqual({ count: 1, reason: expect.stringContaining('128 GPUs') as string })
  })

  it('never gives more points than it promises', () => {
    const target = history(20_000)
    for (let second = 0; second < 20_000; second++) feed(target, NOON + second * SECOND, { powerWatts: second })
    feed(target, NOON + 20 * HOUR, { powerWatts: 7 })
    for (const stepMs of [null, 1, 1500]) {
      const answer = ask(target, { stepMs, from: NOON + SECOND })
      expect(answer.data[0]?.length).toBeLessThanOrEqual(MAX_POINTS)
      expect(answer.data[1]?.at(-1)).toBe(7)
    }
  })
})

describe('whatever comes', () => {
  const fields: GpuField[] = ['powerWatts', 'memoryUsedBytes']
  const time = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: NOON, max: NOON + 3 * HOUR }) },
    fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, 0, -1, 8.64e15, 1e300),
    fc.double(),
  )
  const value = fc.option(fc.double(), { nil: null })
  const bound = fc.oneof(time, fc.constantFrom(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY))
  const step = fc.oneof(fc.constant(null), fc.integer({ min: -5, max: 10 * MINUTE }), fc.double())

  it('answers with columns of one length, times ascending, numbers finite', () => {
    const property = fc.property(
      fc.array(fc.record({ at: time, powerWatts: value, memoryUsedBytes: value }), { maxLength: 80 }),
      fc.record({ from: bound, to: bound, stepMs: step }),
      (samples, range) => {
        const target = history(20, 2)
        for (const { at, ...readings } of samples) feed(target, at, readings)
        const { data, min, max } = ask(target, { ...range, fields: [...fields, 'nonsense' as GpuField] })
        expect(data).toHaveLength(4)
        const [times = []] = data
        expect(times.length).toBeLessThanOrEqual(MAX_POINTS)
        for (const column of [...data, ...(min ?? []), ...(max ?? [])]) {
          expect(column).toHaveLength(times.length)
          expect(column.every((cell) => cell === null || Number.isFinite(cell))).toBe(true)
        }
        expect(times.every((at, index) => index === 0 || Number(at) > Number(times[index - 1]))).toBe(true)
      },
    )
    const everything = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY, stepMs: Number.POSITIVE_INFINITY }
    const examples: [{ at: number; powerWatts: number | null; memoryUsedBytes: number | null }[], typeof everything][] = [
      [[{ at: 1_753_876_800_000, powerWatts: null, memoryUsedBytes: null }], everything],
    ]
    fc.assert(property, { numRuns: 500, examples })
  })
})
