import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lostParts, type RunTime, TIME_PARTS, TimeAccount } from './run-time.ts'

const T = 1_700_000_000_000

interface Step {
  readonly at: number
  readonly step: number
  readonly stepSeconds: number | null
  readonly phaseSeconds: Record<string, number> | null
}

function account(steps: readonly Step[]): TimeAccount {
  const time = new TimeAccount()
  for (const step of steps) time.add(step)
  return time
}

/** One step a second, the first ends `from` seconds after the start. */
function steady(count: number, more: Partial<Step> = {}, from = 1, firstStep = 1): Step[] {
  return Array.from({ length: count }, (_, index) => ({
    at: T + (from + index) * 1000,
    step: firstStep + index,
    stepSeconds: 1,
    phaseSeconds: null,
    ...more,
  }))
}

const sumOf = ({ seconds }: RunTime) => TIME_PARTS.reduce((sum, part) => sum + (seconds[part] ?? 0), 0)

describe('TimeAccount', () => {
  it('counts what comes before the first step as start-up, and the first step as far as it is longer than the others', () => {
    const steps = steady(100, {}, 51)
    const [first, ...others] = steps
    const { seconds, goodputRatio } = account([{ ...(first as Step), stepSeconds: 11 }, ...others]).until(T, T + 150_000, false)
    expect(seconds).toMatchObject({ startup: 50, productive: 100, rest: 0, repeated: 0, hang: 0, data: null })
    expect(goodputRatio).toBeCloseTo(100 / 150)
  })

  it('takes data, checkpoints and evaluation from the phases, and data by the clock of the GPU where it is known', () => {
    const phaseSeconds = { data: 0.4, forward: 0.3, checkpoint: 0.1 }
    expect(account(steady(101, { phaseSeconds })).until(T, T + 101_000, false).seconds).toMatchObject({
      data: expect.closeTo(40),
      checkpoint: expect.closeTo(10),
      evaluation: 0,
      productive: expect.closeTo(51),
    })
    const byGpu = { ...phaseSeconds, 'data@gpu': 0, 'forward@gpu': 0.9 }
    expect(account(steady(101, { phaseSeconds: byGpu })).until(T, T + 101_000, false).seconds.data).toBe(0)
  })

  it('counts steps that are done again after a restart, and the time until it goes on', () => {
    const again = steady(50, {}, 161, 71)
    const { seconds } = account([...steady(100), ...again]).until(T, T + 210_000, false)
    expect(seconds).toMatchObject({ repeated: 30, startup: 60, productive: 120, rest: 0 })
  })

  it('knows a restart that repeats nothing by its process', () => {
    const time = account(steady(100))
    for (const [index, step] of steady(50, {}, 161, 101).entries()) time.add(step, index === 0)
    expect(time.until(T, T + 210_000, false).seconds).toMatchObject({ repeated: 0, startup: 60, productive: 150 })
  })

  it('calls a long step a hang, unless a phase explains it', () => {
    const long = { at: T + 720_000, step: 101, stepSeconds: 620, phaseSeconds: null }
    expect(account([...steady(100), long]).until(T, T + 720_000, false).seconds).toMatchObject({ hang: 619, productive: 101 })
    const saves = { ...long, phaseSeconds: { checkpoint: 619 } }
    expect(account([...steady(100), saves]).until(T, T + 720_000, false).seconds).toMatchObject({ hang: 0, checkpoint: 619 })
  })

  it('calls silence a hang while the run goes on, and the rest after a good end', () => {
    const time = account(steady(100))
    expect(time.until(T, T + 400_000, true).seconds).toMatchObject({ hang: 300, rest: 0 })
    expect(time.until(T, T + 400_000, false).seconds).toMatchObject({ hang: 0, rest: 300 })
    expect(time.until(T, T + 120_000, true).seconds).toMatchObject({ hang: 0, rest: 20 })
  })

  it('is all start-up before the first step, and nothing before any time', () => {
    expect(new TimeAccount().until(T, T + 9000, true)).toMatchObject({ goodputRatio: 0, seconds: { startup: 9 } })
    expect(new TimeAccount().until(T, T, true).goodputRatio).toBeNull()
  })

  it('takes a line for every tenth step as ten steps', () => {
    const steps = steady(20).map((step, index) => ({ ...step, step: index * 10, at: T + index * 10_000 + 1000 }))
    expect(account(steps).until(T, T + 191_000, false).seconds).toMatchObject({ productive: 191, rest: 0 })
  })

  it('goes on from what it saved', () => {
    const [before, after] = [steady(40), steady(40, {}, 41, 41)]
    const restored = new TimeAccount(JSON.parse(JSON.stringify(account(before))))
    for (const step of after) restored.add(step)
    expect(restored.until(T, T + 80_000, false)).toEqual(account([...before, ...after]).until(T, T + 80_000, false))
    expect(new TimeAccount(JSON.parse(JSON.stringify(new TimeAccount()))).until(T, T + 1000, true).seconds.startup).toBe(1)
  })

  it('adds up to the wall time, with no part below 0, whatever steps come', () => {
    const odd = fc.oneof(fc.double({ noNaN: false }), fc.double({ min: 0, max: 1000 }), fc.constant(null))
    const phases = fc.dictionary(fc.constantFrom('data', 'data@gpu', 'evaluation', 'checkpoint', 'forward', 'eval'), fc.double())
    const step = fc.record({
      at: fc.integer({ min: T - 10_000, max: T + 1_000_000 }),
      step: fc.integer({ min: -5, max: 300 }),
      stepSeconds: odd,
      phaseSeconds: fc.option(phases),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: -1000, max: 2_000_000 }), fc.boolean(), (steps, length, isGoing) => {
        const time = account(steps.sort((a, b) => a.at - b.at)).until(T, T + length, isGoing)
        expect(Math.abs(sumOf(time) - time.wallSeconds)).toBeLessThan(1e-6 * Math.max(1, time.wallSeconds))
        for (const part of TIME_PARTS) expect(time.seconds[part] ?? 0).toBeGreaterThanOrEqual(-1e-6)
        if (time.goodputRatio !== null) expect(time.goodputRatio).toBeLessThanOrEqual(1 + 1e-9)
        expect(time.wallSeconds).toBeGreaterThanOrEqual(Math.max(0, length) / 1000 - 1e-9)
      }),
      { numRuns: 500 },
    )
  })
})

describe('lostParts', () => {
  it('has what was lost, the largest first', () => {
    const time = account([...steady(100), ...steady(50, {}, 161, 71)]).until(T, T + 210_000, false)
    expect(lostParts(time).map(({ part }) => part)).toEqual(['startup', 'repeated'])
  })
})
