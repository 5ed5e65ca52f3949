import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { ecc } from './ecc.ts'
import { device, event, gpu, START } from './inputs.fixture.ts'

const at = (second: number) => START + second * 1000
const counts = (uncorrected: number | null, corrected: number | null = 0, extra = {}) => ({
  eccUncorrectedVolatileCount: uncorrected,
  eccUncorrectedAggregateCount: uncorrected,
  eccCorrectedVolatileCount: corrected,
  eccCorrectedAggregateCount: corrected,
  ...extra,
})

detectorContract({
  kind: ecc,
  trouble: () => [device(), ...Array.from({ length: 500 }, (_, index) => gpu(at(index * 10), counts(index < 20 ? 3 : 4)))],
})

describe('ecc', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(ecc.create(ecc.defaults), inputs)

  it('does not blame this agent for errors that were there before it', () => {
    expect(run(Array.from({ length: 100 }, (_, index) => gpu(at(index), counts(17, 90_000))))).toEqual([])
  })

  it('is critical at the first new uncorrected error', () => {
    const found = run([gpu(at(0), counts(17)), gpu(at(1), counts(17)), gpu(at(2), counts(18))])
    expect(found).toMatchObject([{ severity: 'critical', at: at(2), evidence: { uncorrected_new: 1, uncorrected_total: 18 } }])
  })

  it('starts anew when a reset takes the counters back', () => {
    expect(run([gpu(at(0), counts(17, 500)), gpu(at(1), counts(0, 0)), gpu(at(2), counts(0, 0))])).toEqual([])
  })

  it('does not take a reading that appears later for errors', () => {
    expect(
      run([gpu(at(0), counts(null, null)), gpu(at(1), counts(17, 3000)), gpu(at(2), counts(null, null)), gpu(at(3), counts(17, 3000))]),
    ).toEqual([])
  })

  it('warns of a storm of corrected errors, not of a drizzle', () => {
    const drizzle = Array.from({ length: 600 }, (_, index) => gpu(at(index * 10), counts(0, Math.floor(index / 10))))
    expect(run(drizzle)).toEqual([])
    const storm = Array.from({ length: 60 }, (_, index) => gpu(at(index * 10), counts(0, index * 5)))
    expect(run(storm)[0]).toMatchObject({ severity: 'warning' })
  })

  it('takes the driver at its word', () => {
    expect(run([gpu(at(0)), event(at(1), { event: 'ecc_uncorrected', code: null })])[0]?.severity).toBe('critical')
  })
})
