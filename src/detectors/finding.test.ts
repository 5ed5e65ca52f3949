import { describe, expect, it } from 'vitest'
import { FindingBook, fingerprintOf, subjectOf } from './finding.ts'

const subject = subjectOf({ gpu: 'GPU-0', pid: 7 })
const draft = { severity: 'warning' as const, message: 'It is too hot.', evidence: { celsius: 95 }, confidence: 0.9, advice: [] }

describe('finding book', () => {
  it('begins, updates sparingly, and resolves under one fingerprint', () => {
    const book = new FindingBook('thermal')
    const said = [0, 1000, 59_000, 60_000, 61_000].flatMap((at) => book.raise(subject, at, draft))
    expect(said.map((finding) => finding.at)).toEqual([0, 60_000])
    const end = book.resolve(book.key(subject), 90_000)
    expect(end).toMatchObject([{ state: 'resolved', at: 90_000, since: 0, fingerprint: said[0]?.fingerprint }])
    expect(book.resolve(book.key(subject), 91_000)).toEqual([])
  })

  it('says less the longer it lasts', () => {
    const book = new FindingBook('thermal')
    let count = 0
    for (let minute = 0; minute < 24 * 60; minute++) count += book.raise(subject, minute * 60_000, draft).length
    expect(count).toBeLessThan(25)
    expect(count).toBeGreaterThan(5)
  })

  it('reports at once when it gets worse', () => {
    const book = new FindingBook('thermal')
    book.raise(subject, 0, draft)
    expect(book.raise(subject, 1, { ...draft, severity: 'critical' })).toHaveLength(1)
    expect(book.raise(subject, 2, { ...draft, severity: 'critical', riskLevel: 'high' })).toHaveLength(1)
  })

  it('keeps when it began, and never later than now', () => {
    const book = new FindingBook('thermal')
    expect(book.raise(subject, 1000, { ...draft, since: 200 })[0]?.since).toBe(200)
    expect(book.raise(subject, 100_000, { ...draft, since: 90_000 })[0]?.since).toBe(200)
    expect(new FindingBook('x').raise(subject, 1000, { ...draft, since: 5000 })[0]?.since).toBe(1000)
  })

  it('refuses a new one when there are far too many, and ends none for it', () => {
    const book = new FindingBook('thermal')
    const all = Array.from({ length: 5000 }, (_, pid) => book.raise(subjectOf({ pid }), pid, draft)).flat()
    expect(book.size).toBe(4096)
    expect(all).toHaveLength(4096)
    expect(all.every((finding) => finding.state === 'active')).toBe(true)
    expect(book.raise(subjectOf({ pid: 0 }), 1e9, draft)).toHaveLength(1)
  })

  it('identifies a finding by detector and subject, not by what may become known later', () => {
    expect(fingerprintOf('intruder', subject)).toBe(fingerprintOf('intruder', { ...subject, user: 'bob', gpuIndex: 3, host: 'n' }))
    expect(fingerprintOf('xid', subject, 'code=79')).not.toBe(fingerprintOf('xid', subject, 'code=48'))
    expect(fingerprintOf('straggler', subjectOf({ run: 'a', rank: 1 }))).not.toBe(
      fingerprintOf('straggler', subjectOf({ run: 'a', rank: 2 })),
    )
  })
})
