import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { health, START } from './inputs.fixture.ts'
import { sourceStale } from './source-stale.ts'

/** Looked at so many seconds after its last sample. */
const silent = (seconds: number, overrides = {}) => health(START + seconds * 1000, { since: START, lastSampleAt: START, ...overrides })

detectorContract({
  kind: sourceStale,
  trouble: () => [...Array.from({ length: 40 }, (_, index) => silent(index * 15)), health(START + 700_000)],
})

describe('source_stale', () => {
  const run = (...inputs: Parameters<typeof feed>[1]) => feed(sourceStale.create(sourceStale.defaults), inputs)

  it('says which source, and for how long it has been silent', () => {
    expect(run(silent(59))).toEqual([])
    expect(run(silent(75))).toMatchObject([
      {
        fingerprint: 'source_stale|source=nvidia',
        severity: 'warning',
        message: 'The nvidia source says that it is well, but has not sent a sample for 1 min.',
        evidence: { source: 'nvidia', silent_seconds: 75, last_sample_at: START },
      },
    ])
  })

  it('counts from the start where no sample ever came', () => {
    expect(run(silent(75, { state: 'starting', lastSampleAt: null }))).toMatchObject([{ evidence: { state: 'starting' } }])
  })

  it('waits for five intervals of a source that is read seldom', () => {
    expect(run(silent(3600, { intervalMs: 3_600_000 }))).toEqual([])
    expect(run(silent(6 * 3600, { intervalMs: 3_600_000 }))).toHaveLength(1)
  })

  it('leaves to driver_stuck what is known to be wrong, and recordings to their own time', () => {
    expect(run(silent(300, { state: 'not_responding' }), silent(300, { state: 'ended' }), silent(300, { provenance: 'replay' }))).toEqual(
      [],
    )
    expect(run(silent(300), silent(310, { state: 'crashed' })).map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('is over when samples come again, and not while they come late', () => {
    const late = silent(130, { lastSampleAt: START + 95_000 })
    const back = silent(140, { lastSampleAt: START + 139_000 })
    expect(run(silent(75), late, back).map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('keeps sources apart, and a clock that was set back ends nothing wrongly', () => {
    const found = run(silent(75), silent(75, { source: 'amd' }), health(START + 80_000))
    expect(found.filter(({ state }) => state === 'resolved').map(({ evidence }) => evidence.source)).toEqual(['nvidia'])
    expect(run(silent(-3600))).toEqual([])
  })
})
