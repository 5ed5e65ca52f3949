import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { driverStuck } from './driver-stuck.ts'
import { device, gpu, health, START, silentGpu } from './inputs.fixture.ts'

const stuck = (second: number, overrides = {}) =>
  health(START + second * 1000, {
    ...{ state: 'not_responding', since: START, restarts: 1, message: 'A driver call has not returned for 5 s.' },
    ...overrides,
  })

detectorContract({
  kind: driverStuck,
  trouble: () => [
    gpu(START),
    ...Array.from({ length: 30 }, (_, index) => stuck(index + 1)),
    health(START + 40_000, { state: 'starting' }),
    health(START + 41_000),
    gpu(START + 42_000),
  ],
})

describe('driver_stuck', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(driverStuck.create(driverStuck.defaults), inputs)

  it('says since when', () => {
    const [found] = run([stuck(5)])
    expect(found).toMatchObject({ severity: 'critical', since: START })
    expect(found?.message).toContain(new Date(START).toISOString().slice(11, 19))
    expect(found?.message).toContain('has not returned')
  })

  it('is not over because the sampler is being started again', () => {
    expect(run([stuck(1), health(START + 2000, { state: 'starting' })]).map((finding) => finding.state)).toEqual(['active'])
  })

  it('says nothing of a start, an end or a healthy source', () => {
    expect(run([health(START, { state: 'starting' }), health(START + 1, { state: 'ok' }), health(START + 2, { state: 'ended' })])).toEqual(
      [],
    )
  })

  it('takes repeated crashes more seriously than one', () => {
    expect(run([stuck(1, { state: 'crashed', restarts: 1 })])[0]?.severity).toBe('warning')
    expect(run([stuck(1, { state: 'crashed', restarts: 5 })])[0]?.severity).toBe('critical')
  })

  it('is a warning while a slow driver may still start, and critical once it was given up', () => {
    expect(run([stuck(8, { restarts: 0 }), stuck(30)]).map(({ severity }) => severity)).toEqual(['warning', 'critical'])
  })

  it('keeps sources apart', () => {
    const found = run([stuck(1), stuck(1, { source: 'amd' }), health(START + 5000)])
    expect(found.filter((finding) => finding.state === 'resolved').map((finding) => finding.evidence.source)).toEqual(['nvidia'])
  })

  describe('of a card without a driver', () => {
    const bare = (second: number) => silentGpu(START + second * 1000, { state: 'no_driver', stateReason: 'Install it.' })

    it('speaks where its source works, and ends with its driver', () => {
      const found = run([device(), health(START), bare(1), bare(2), gpu(START + 3000)])
      expect(found.map(({ state, severity, message }) => [state, severity, message])).toEqual([
        ['active', 'warning', 'GPU 0 has no driver. Install it.'],
        ['resolved', 'warning', 'GPU 0 has its driver.'],
      ])
    })

    it('leaves it to the one finding about the source where that has failed', () => {
      const found = run([device(), stuck(1, { state: 'failed' }), bare(2), health(START + 3000, { state: 'starting' }), bare(4)])
      expect(found.map(({ fingerprint }) => fingerprint)).toEqual(['driver_stuck|source=nvidia'])
    })
  })
})
