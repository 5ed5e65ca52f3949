import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { device, event, gpu, START } from './inputs.fixture.ts'
import { xid } from './xid.ts'

const MINUTE = 60_000
const quiet = (fromMinute: number, minutes: number) =>
  Array.from({ length: minutes }, (_, index) => gpu(START + (fromMinute + index) * MINUTE))

detectorContract({
  kind: xid,
  trouble: () => [device(), gpu(START), event(START + 1000), ...quiet(1, 5), event(START + 6 * MINUTE, { code: 31 }), ...quiet(7, 20)],
})

describe('xid', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(xid.create(xid.defaults), inputs)
  const severity = (code: number) => run([event(START, { code })])[0]?.severity

  it('distinguishes hardware from programs', () => {
    for (const code of [48, 62, 64, 74, 79, 94, 95, 119, 120]) expect(severity(code), `XID ${code}`).toBe('critical')
    for (const code of [13, 31]) expect(severity(code), `XID ${code}`).toBe('warning')
    expect(severity(43)).toBe('info')
    expect(severity(63)).toBe('warning')
  })

  it('takes a number that it does not know for a warning', () => {
    expect(run([event(START, { code: 987 })])[0]).toMatchObject({ severity: 'warning', evidence: { xid: 987 } })
    expect(severity(Number.MAX_SAFE_INTEGER)).toBe('warning')
    expect(run([event(START, { code: null })])[0]?.severity).toBe('warning')
  })

  it('is an event: over after ten minutes without another', () => {
    const found = run([gpu(START), event(START + 1000), ...quiet(1, 8), event(START + 9 * MINUTE), ...quiet(10, 15)])
    expect(found.at(-1)?.state).toBe('resolved')
    expect(found.at(-1)?.at).toBe(START + 19 * MINUTE)
  })

  it('counts a storm and says it sparingly', () => {
    const storm = Array.from({ length: 1000 }, (_, index) => event(START + index * 10, { code: 13 }))
    expect(run(storm).length).toBe(1)
  })

  it('keeps two different errors of a GPU apart', () => {
    const found = run([event(START, { code: 48 }), event(START + 1, { code: 63 })])
    expect(new Set(found.map((finding) => finding.fingerprint)).size).toBe(2)
  })

  it('does not bring up what the kernel log kept from long ago', () => {
    expect(run([gpu(START), event(START - 60 * MINUTE)])).toEqual([])
  })

  it('can do without knowing the GPU', () => {
    expect(run([event(START, { gpu: null })])[0]).toMatchObject({ severity: 'critical', subject: { gpu: null } })
  })
})
