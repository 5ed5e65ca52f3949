import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { device, gpu, START } from './inputs.fixture.ts'
import { remap } from './remap.ts'

const samples = (overrides: object, seconds: number, from = 0) =>
  Array.from({ length: seconds }, (_, index) => gpu(START + (from + index) * 1000, overrides))

detectorContract({
  kind: remap,
  trouble: () => [
    device(),
    ...samples({}, 20),
    ...samples({ remapPending: 1 }, 20, 20),
    ...samples({ remapFailure: 1 }, 20, 40),
    ...samples({}, 20, 60),
  ],
})

describe('remap', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(remap.create(remap.defaults), inputs)

  it('waits for the first seconds after the start to pass', () => {
    expect(run(samples({ remapPending: 1 }, 10))).toEqual([])
    expect(run(samples({ remapPending: 1 }, 12))[0]).toMatchObject({ severity: 'warning' })
  })

  it('advises to replace a card that has no spare rows left', () => {
    expect(run(samples({ remapFailure: 1, remapPending: 1 }, 12))[0]).toMatchObject({
      severity: 'critical',
      advice: [expect.stringContaining('replace it')],
    })
  })

  it('knows retired pages of older cards', () => {
    expect(run(samples({ retiredPagesPending: 1, remapPending: null }, 12))[0]?.severity).toBe('warning')
  })

  it('does not take a missing reading for health', () => {
    const found = run([
      ...samples({ remapFailure: 1 }, 12),
      ...samples({ remapFailure: null, remapPending: null, retiredPagesPending: null }, 12, 12),
    ])
    expect(found.map((finding) => finding.state)).toEqual(['active'])
  })
})
