import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Finding } from '../core/model.ts'
import { FindingHistory } from './finding-history.ts'
import { parseFindingLine } from './finding-line.ts'
import { findingRecord } from './lines.ts'
import { refillFindings } from './refill-findings.ts'
import { describeSink, finding, NOON, recordedLog, SETTINGS, temporaryDir } from './sink.contract.ts'
import { createStore } from './store.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const ALL = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY, gpu: null, run: null, limit: 1000 }

/** The problem `name` that began at minute `since`, as it was said at minute `at`. */
function said(name: string, since: number, at: number, state: Finding['state'] = 'active'): Finding {
  const message = state === 'active' ? `${name} said at ${at}` : 'it is over'
  return { ...finding(NOON), fingerprint: name, since: NOON + since * MINUTE, at: NOON + at * MINUTE, state, message, predictedAt: null }
}

function tell(history: FindingHistory, ...findings: readonly Finding[]): void {
  for (const one of findings) history.accept({ type: 'finding', finding: one })
}

const shown = (history: FindingHistory, query: Partial<typeof ALL> = {}) =>
  history.query({ ...ALL, ...query } as typeof ALL).map(({ message, state, at }) => `${message}, ${state} ${(at - NOON) / MINUTE}`)

describeSink('finding-history', async () => new FindingHistory())

describe('history of findings', () => {
  it('has each problem once: its last statement, and when it ended', () => {
    const history = new FindingHistory()
    tell(history, said('a', 0, 0), said('b', 1, 1), said('a', 0, 2), said('a', 0, 3, 'resolved'), said('b', 1, 4))
    expect(shown(history)).toEqual(['b said at 4, active 4', 'a said at 2, resolved 3'])
  })

  it('says of a forecast that is over what became of it', () => {
    const history = new FindingHistory()
    tell(history, { ...said('oom', 0, 0), predictedAt: NOON + MINUTE }, said('oom', 0, 1, 'resolved'))
    expect(shown(history)).toEqual(['it is over The forecast was: oom said at 0, resolved 1'])
  })

  it('takes what comes back for another problem', () => {
    const history = new FindingHistory()
    tell(history, said('a', 0, 0), said('a', 0, 1, 'resolved'), said('a', 5, 5), said('a', 9, 9))
    // The second one was never said to be over, but it cannot go on beside the third.
    expect(shown(history)).toEqual(['a said at 9, active 9', 'a said at 5, resolved 5', 'a said at 0, resolved 1'])
    tell(history, said('a', 0, 20))
    expect(shown(history)[0]).toBe('a said at 20, active 20')
  })

  it('is not confused by what is said twice', () => {
    const history = new FindingHistory()
    tell(history, said('a', 0, 0), said('a', 0, 2, 'resolved'), said('a', 0, 2, 'resolved'), said('a', 0, 1))
    expect(shown(history)).toEqual(['a said at 0, resolved 2'])
  })

  it('chooses by time, GPU and run', () => {
    const history = new FindingHistory()
    const run = said('r', 30, 30)
    tell(history, said('a', 0, 1), said('a', 0, 10, 'resolved'), { ...run, subject: { ...run.subject, gpu: 'GPU-9', run: 'other' } })
    expect(shown(history, { to: NOON + 20 * MINUTE })).toEqual(['a said at 1, resolved 10'])
    expect(shown(history, { from: NOON + 20 * MINUTE })).toEqual(['r said at 30, active 30'])
    // Still there, so also now.
    expect(shown(history, { from: NOON + 99 * MINUTE })).toEqual(['r said at 30, active 30'])
    expect(shown(history, { from: NOON + 5 * MINUTE, to: NOON + 6 * MINUTE })).toHaveLength(1)
    expect(history.query({ ...ALL, gpu: 'GPU-9' })).toHaveLength(1)
    expect(history.query({ ...ALL, run: 'run' })).toHaveLength(1)
    expect(shown(history, { limit: 1 })).toEqual(['r said at 30, active 30'])
  })

  it('forgets what ended first, and keeps what is not over', () => {
    const history = new FindingHistory(3)
    tell(
      history,
      said('old', 0, 0),
      said('b', 1, 1),
      said('b', 1, 2, 'resolved'),
      said('c', 3, 3),
      said('c', 3, 4, 'resolved'),
      said('d', 5, 5),
    )
    expect(shown(history)).toEqual(['d said at 5, active 5', 'c said at 3, resolved 4', 'old said at 0, active 0'])
    tell(history, said('e', 6, 6), said('f', 7, 7))
    expect(shown(history)).toEqual(['f said at 7, active 7', 'e said at 6, active 6', 'd said at 5, active 5'])
    tell(history, said('old', 0, 8))
    expect(history.size).toBe(3)
  })

  it('is bounded whatever is said', () => {
    const one = fc.record({ name: fc.constantFrom('a', 'b', 'c'), since: fc.nat(9), at: fc.nat(30), over: fc.boolean() })
    fc.assert(
      fc.property(fc.array(one, { maxLength: 100 }), (all) => {
        const history = new FindingHistory(5)
        for (const { name, since, at, over } of all) tell(history, said(name, since, at, over ? 'resolved' : 'active'))
        expect(history.size).toBeLessThanOrEqual(5)
        const active = history.query(ALL).filter(({ state }) => state === 'active')
        expect(new Set(active.map(({ fingerprint }) => fingerprint)).size).toBe(active.length)
      }),
    )
  })
})

describe('refilling it', () => {
  const options = { now: NOON + 2 * HOUR, hours: 24 }

  async function written(dir: string, name: string, ...findings: readonly Finding[]): Promise<void> {
    const text = findings.map((one) => `${JSON.stringify(findingRecord(one))}\n`).join('')
    await writeFile(join(dir, name), name.endsWith('.gz') ? gzipSync(text) : text)
  }

  it('reads what the store wrote, over several files, compressed ones too', async () => {
    const dir = await temporaryDir()
    await written(dir, 'findings_20250730_110000.jsonl.gz', said('a', -60, -60), said('b', -50, -50))
    await written(dir, 'findings_20250730_120000.jsonl', said('a', -60, 0, 'resolved'), said('b', -50, 1))
    await written(dir, 'gpu_events_20250730_120000.jsonl', said('x', 0, 0))
    const history = new FindingHistory()
    expect(await refillFindings(history, dir, options)).toEqual({ files: 2, findings: 4, faults: [] })
    // Of the second nobody knows more than when it was last said.
    expect(shown(history)).toEqual(['b said at 1, resolved 1', 'a said at -60, resolved 0'])
  })

  it('goes on with what today’s detectors go on with, whichever comes first', async () => {
    const dir = await temporaryDir()
    await written(dir, 'findings_20250730_120000.jsonl', said('a', 0, 5), said('b', 0, 6), said('c', 0, 7))
    const live = [said('a', 0, 130), said('b', 0, 131, 'resolved')]
    const before = new FindingHistory()
    tell(before, ...live)
    await refillFindings(before, dir, options)
    const after = new FindingHistory()
    await refillFindings(after, dir, options)
    expect(shown(after)).toEqual(['c said at 7, resolved 7', 'b said at 6, resolved 6', 'a said at 5, resolved 5'])
    tell(after, ...live)
    for (const history of [before, after])
      expect(shown(history)).toEqual(['b said at 6, resolved 131', 'a said at 130, active 130', 'c said at 7, resolved 7'])
  })

  it('leaves out what is too old or of now, and names what is damaged', async () => {
    const dir = await temporaryDir()
    await written(dir, 'findings_20250729_100000.jsonl', said('old', -1500, -1400), said('now', 120, 120))
    await writeFile(
      join(dir, 'findings_20250730_120000.jsonl'),
      'no json\n{"at":1}\n[]\n\n{"at":"2025-07-30T12:00:00.000Z","state":"gone"}\n',
    )
    await writeFile(join(dir, 'findings_20250730_110000.jsonl.gz'), 'no gzip')
    const history = new FindingHistory()
    const outcome = await refillFindings(history, dir, options)
    expect(outcome).toMatchObject({ findings: 0, faults: [expect.stringContaining('findings_20250730_110000.jsonl.gz')] })
    expect(history.size).toBe(0)
    expect(await refillFindings(history, join(dir, 'nowhere'), options)).toEqual({ files: 0, findings: 0, faults: [] })
  })

  it('gives back the very finding that the store took', async () => {
    const dir = await temporaryDir()
    const store = createStore({ dir, settings: SETTINGS, log: recordedLog(), now: () => NOON, runId: 'first' })
    const one = { ...finding(NOON), evidence: { loss: Number.NaN, slope: Number.NEGATIVE_INFINITY, text: 'x', sure: true, none: null } }
    store.accept({ type: 'finding', finding: one })
    await store.close()
    const history = new FindingHistory()
    await refillFindings(history, dir, { now: NOON + HOUR, hours: 24 })
    expect(history.query(ALL)).toEqual([{ ...one, state: 'resolved' }])
  })
})

describe('a line of the log', () => {
  it('says what was written', () => {
    const at = fc.integer({ min: 0, max: 4_102_444_800_000 })
    const text = fc.option(fc.string(), { nil: null })
    const number = fc.option(fc.integer(), { nil: null })
    const some = fc.record({
      fingerprint: fc.string(),
      detector: fc.string(),
      provenance: fc.constantFrom('live', 'simulated', 'replay'),
      subject: fc.record({ host: text, gpu: text, gpuIndex: number, pid: number, user: text, run: text, rank: number }),
      severity: fc.constantFrom('info', 'warning', 'critical'),
      state: fc.constantFrom('active', 'resolved'),
      at,
      since: at,
      message: fc.string(),
      evidence: fc.constant({ a: 1.5, b: Number.POSITIVE_INFINITY, c: 'x', d: false, e: null }),
      confidence: fc.constantFrom(0, 0.5, 1),
      advice: fc.array(fc.string()),
      predictedAt: fc.option(at, { nil: null }),
      predictedEarliestAt: fc.option(at, { nil: null }),
      predictedLatestAt: fc.option(at, { nil: null }),
      riskLevel: fc.constantFrom('low', 'medium', 'high', 'critical', null),
    }) as fc.Arbitrary<Finding>
    fc.assert(
      fc.property(some, (one) => {
        expect(parseFindingLine(JSON.stringify(findingRecord(one)))).toEqual(one)
      }),
    )
  })

  it('is no finding when it is anything else', () => {
    fc.assert(fc.property(fc.json(), (line) => parseFindingLine(line) === null))
    for (const wrong of ['', '{', '{"at":"2025-07-30T12:00:00Z","fingerprint":1,"detector":"a","state":"active","message":"m"}'])
      expect(parseFindingLine(wrong)).toBeNull()
    const least = '{"at":"2025-07-30T12:00:00Z","fingerprint":"f","detector":"a","state":"active","message":"m","evidence":[1],"advice":7}'
    expect(parseFindingLine(least)).toMatchObject({ at: NOON, since: NOON, evidence: {}, advice: [], severity: 'info', provenance: 'live' })
  })
})
