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
    expect(run(silent(30), silent(59))).toEqual([])
    expect(run(silent(60), silent(75))).toMatchObject([
      {
        fingerprint: 'source_stale|source=nvidia',
        severity: 'warning',
        since: START + 60_000,
        message: 'The nvidia source says that it is ok, but has not sent a sample for 1 min 15 s.',
        evidence: { source: 'nvidia', silent_seconds: 75, last_sample_at: START },
      },
    ])
  })

  it('says nothing after one look: a machine that slept, or whose clock was set, has its next sample before the second', () => {
    expect(run(silent(3600), silent(3615, { lastSampleAt: START + 3_614_000 }), silent(3630, { lastSampleAt: START + 3_629_000 }))).toEqual(
      [],
    )
    expect(run(silent(3600), silent(3600), silent(3601))).toEqual([])
    expect(run(silent(3600), silent(3615, { lastSampleAt: START + 3_614_000 }), silent(7000), silent(7009))).toEqual([])
  })

  it('counts from the start where no sample ever came', () => {
    const start = { state: 'starting', lastSampleAt: null } as const
    expect(run(silent(60, start), silent(75, start))).toMatchObject([{ evidence: { state: 'starting' } }])
  })

  it('waits for five intervals of a source that is read seldom', () => {
    const seldom = { intervalMs: 3_600_000 }
    expect(run(silent(3600, seldom), silent(4 * 3600, seldom))).toEqual([])
    expect(run(silent(6 * 3600, seldom), silent(6.1 * 3600, seldom))).toHaveLength(1)
  })

  it('leaves to driver_stuck what is known to be wrong, and recordings to their own time', () => {
    for (const other of [{ state: 'not_responding' }, { state: 'ended' }, { provenance: 'replay' }])
      expect(run(silent(300, other), silent(330, other))).toEqual([])
    const found = run(silent(300), silent(315), silent(320, { state: 'crashed' }))
    expect(found.map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('is over when samples come again, and not while they come late', () => {
    const late = silent(130, { lastSampleAt: START + 95_000 })
    const back = silent(140, { lastSampleAt: START + 139_000 })
    expect(run(silent(62), silent(75), late, back).map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('keeps sources apart, and a clock that was set back finds nothing', () => {
    const amd = { source: 'amd' }
    const found = run(silent(60), silent(60, amd), silent(75), silent(75, amd), health(START + 80_000))
    expect(found.filter(({ state }) => state === 'resolved').map(({ evidence }) => evidence.source)).toEqual(['nvidia'])
    expect(run(silent(-3600), silent(-3500))).toEqual([])
    const ahead = run(silent(9000), silent(100), silent(115))
    expect(ahead).toMatchObject([{ state: 'active', since: START + 100_000 }])
  })
})
