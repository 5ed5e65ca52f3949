import { describe, expect, it } from 'vitest'
import { CLOCK_REASON } from '../core/gpu-words.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { device, gpu, START } from './inputs.fixture.ts'
import { powerBrake } from './power-brake.ts'
import { throttle } from './throttle.ts'

const reasons = (bits: (index: number) => number, seconds: number, from = 0) =>
  Array.from({ length: seconds }, (_, index) =>
    gpu(START + (from + index) * 1000, { clockEventReasons: bits(index), smClockHertz: 1_200_000_000 }),
  )
const held = (bits: number, seconds: number, from = 0) => reasons(() => bits, seconds, from)

detectorContract({
  kind: throttle,
  trouble: () => [device(), ...held(0, 10), ...held(CLOCK_REASON.hardwareThermal, 90, 10), ...held(0, 90, 100)],
})
detectorContract({
  kind: powerBrake,
  trouble: () => [device(), ...held(0, 10), ...held(CLOCK_REASON.hardwarePowerBrake, 60, 10), ...held(0, 60, 70)],
})

describe('throttle', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(throttle.create(throttle.defaults), inputs)

  it('takes half a minute of heat, not a moment', () => {
    expect(run(held(CLOCK_REASON.softwareThermal, 25))).toEqual([])
    expect(run(held(CLOCK_REASON.softwareThermal, 35))[0]).toMatchObject({ severity: 'warning' })
  })

  it('sees a bit that flickers', () => {
    const flicker = reasons((index) => (index % 4 === 0 ? 0 : CLOCK_REASON.hardwareThermal), 90)
    expect(run(flicker)[0]?.severity).toBe('warning')
  })

  it('does not see one that comes rarely', () => {
    expect(run(reasons((index) => (index % 4 === 0 ? CLOCK_REASON.hardwareThermal : 0), 600))).toEqual([])
  })

  it('takes the power cap for what it is: normal, information after minutes', () => {
    expect(run(held(CLOCK_REASON.softwarePowerCap, 200))).toEqual([])
    expect(new Set(run(held(CLOCK_REASON.softwarePowerCap, 400)).map((finding) => finding.severity))).toEqual(new Set(['info']))
  })

  it('leaves the power brake to its own detector, and that one leaves heat alone', () => {
    const brake = held(CLOCK_REASON.hardwarePowerBrake | CLOCK_REASON.hardwareSlowdown, 120)
    expect(run(brake)).toEqual([])
    expect(feed(powerBrake.create(powerBrake.defaults), brake)[0]).toMatchObject({ severity: 'warning' })
    expect(feed(powerBrake.create(powerBrake.defaults), held(CLOCK_REASON.hardwareThermal, 120))).toEqual([])
  })
})
