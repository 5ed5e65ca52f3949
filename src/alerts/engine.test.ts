import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AlertEngine, ENGINE_LIMITS, type Patience, type Transition } from './engine.ts'
import { finding, HOUR, MINUTE, NOON, SECOND } from './pretend-world.contract.ts'

const none: Patience = { forMs: 0, keepFiringMs: 0 }
const engineWith = (patience: Partial<Patience> = {}, limits = {}) =>
  new AlertEngine(() => ({ ...none, ...patience }), { ...ENGINE_LIMITS, ...limits })
const said = (transitions: readonly Transition[]) => transitions.map(({ type, record }) => `${record.fingerprint} ${type}`)
const gone = (fingerprint: string, at: number) => finding(fingerprint, at, { state: 'resolved' })

describe('the state machine of alerts', () => {
  it('goes from inactive over firing to resolved, and is forgotten in the end', () => {
    const engine = engineWith()
    expect(said(engine.accept(finding('a', NOON), NOON))).toEqual(['a firing'])
    expect(engine.get('a')).toMatchObject({ phase: 'firing', firedAt: NOON, resolvedAt: null })
    expect(said(engine.accept(finding('a', NOON + SECOND), NOON + SECOND))).toEqual([])
    expect(said(engine.accept(gone('a', NOON + 2 * SECOND), NOON + 2 * SECOND))).toEqual(['a resolved'])
    expect(engine.get('a')).toMatchObject({ phase: 'resolved', resolvedAt: NOON + 2 * SECOND })
    expect(said(engine.accept(gone('a', NOON + 3 * SECOND), NOON + 3 * SECOND))).toEqual([])
    let forgotten: string[] = []
    for (let at = NOON; at < NOON + 2 * HOUR && forgotten.length === 0; at += MINUTE) forgotten = said(engine.advance(at))
    expect(forgotten).toEqual(['a forgotten'])
    expect(engine.size).toBe(0)
  })

  it('is pending until it has been there for long enough, counting what its detector saw before', () => {
    const engine = engineWith({ forMs: 5 * MINUTE })
    expect(said(engine.accept(finding('a', NOON), NOON))).toEqual(['a pending'])
    expect(said(engine.accept(finding('old', NOON, { since: NOON - 4.5 * MINUTE }), NOON))).toEqual(['old pending'])
    expect(said(engine.advance(NOON + 30 * SECOND))).toEqual(['old firing'])
    for (let minute = 1; minute < 5; minute++) expect(said(engine.advance(NOON + minute * MINUTE))).toEqual([])
    expect(said(engine.advance(NOON + 5 * MINUTE))).toEqual(['a firing'])
    expect(engine.get('a')?.firedAt).toBe(NOON + 5 * MINUTE)
  })

  it('forgets what goes before it fires', () => {
    const engine = engineWith({ forMs: MINUTE })
    engine.accept(finding('a', NOON), NOON)
    expect(said(engine.accept(gone('a', NOON + SECOND), NOON + SECOND))).toEqual(['a forgotten'])
    expect(said(engine.advance(NOON + MINUTE))).toEqual([])
  })

  it('keeps firing for a while after it has cleared, and goes on when it comes back', () => {
    const engine = engineWith({ keepFiringMs: MINUTE })
    engine.accept(finding('a', NOON), NOON)
    expect(said(engine.accept(gone('a', NOON + SECOND), NOON + SECOND))).toEqual([])
    expect(said(engine.accept(finding('a', NOON + 30 * SECOND), NOON + 30 * SECOND))).toEqual([])
    engine.accept(gone('a', NOON + 40 * SECOND), NOON + 40 * SECOND)
    expect(said(engine.advance(NOON + 99 * SECOND))).toEqual([])
    expect(said(engine.advance(NOON + 100 * SECOND))).toEqual(['a resolved'])
    expect(engine.get('a')?.resolvedAt).toBe(NOON + 40 * SECOND)
  })

  it('damps what flaps: the more it comes and goes, the longer it must be clear', () => {
    const engine = engineWith()
    let at = NOON
    const transitions: string[] = []
    for (let i = 0; i < 60; i++) {
      at += 20 * SECOND
      transitions.push(...said(engine.accept(finding('a', at), at)))
      at += 20 * SECOND
      transitions.push(...said(engine.accept(gone('a', at), at)))
    }
    expect(transitions).toEqual(['a firing', 'a resolved', 'a firing', 'a resolved', 'a firing'])
    const record = engine.get('a')
    expect(record && engine.isFlapping(record)).toBe(true)
    const last = at
    while (said(engine.advance(at)).length === 0 && at < last + 3 * HOUR) at += 30 * SECOND
    expect(at - last).toBe(HOUR)
  })

  it('says when a problem gets worse, not when it gets better', () => {
    const engine = engineWith()
    engine.accept(finding('a', NOON), NOON)
    expect(said(engine.accept(finding('a', NOON, { severity: 'critical' }), NOON))).toEqual(['a worse'])
    expect(said(engine.accept(finding('a', NOON, { severity: 'info' }), NOON))).toEqual([])
  })

  it('does not take a jump of the clock for time that has passed', () => {
    const engine = engineWith({ forMs: 5 * MINUTE })
    engine.accept(finding('a', NOON), NOON)
    expect(said(engine.advance(NOON + 24 * HOUR))).toEqual([])
    expect(said(engine.advance(NOON - 24 * HOUR))).toEqual([])
    let at = NOON - 24 * HOUR
    for (let i = 0; i < 3; i++) {
      at += MINUTE
      expect(said(engine.advance(at))).toEqual([])
    }
    expect(said(engine.advance(at + MINUTE))).toEqual(['a firing'])
  })

  it('is bounded: what is over makes room, then what is less severe; else the new one is refused and counted', () => {
    const engine = engineWith({}, { records: 3 })
    for (const name of ['a', 'b', 'c']) engine.accept(finding(name, NOON), NOON)
    expect(said(engine.accept(finding('d', NOON), NOON))).toEqual([])
    expect(engine.refused).toBe(1)
    engine.accept(gone('b', NOON), NOON)
    expect(said(engine.accept(finding('d', NOON), NOON))).toEqual(['b forgotten', 'd firing'])
    expect(said(engine.accept(finding('e', NOON, { severity: 'critical' }), NOON))).toEqual(['a forgotten', 'e firing'])
    expect(engine.size).toBe(3)
  })

  it('does not fire after a restart before somebody has said that the problem lasts', () => {
    const patience = { forMs: 60_000, keepFiringMs: 0 }
    const before = engineWith(patience)
    expect(said(before.accept(finding('a', NOON), NOON))).toEqual(['a pending'])
    const engine = engineWith(patience)
    engine.restore(before.snapshot())
    expect(said(engine.advance(NOON + 59_000))).toEqual([])
    expect(said(engine.advance(NOON + 90_000))).toEqual([])
    expect(said(engine.accept(finding('a', NOON + 91_000), NOON + 91_000))).toEqual(['a firing'])
  })

  it('does not take the repetition of an old finding for time that has passed', () => {
    const patience = { forMs: 60_000, keepFiringMs: 0 }
    const engine = engineWith(patience)
    engine.accept(finding('a', NOON), NOON)
    for (let seconds = 1; seconds < 10; seconds++) {
      engine.accept(finding('old', NOON - 600_000), NOON - 600_000)
      expect(said(engine.advance(NOON + seconds * 1000))).toEqual([])
    }
    expect(said(engine.advance(NOON + 60_000))).toContain('a firing')
  })

  it('gives the same transitions for the same input, whether or not it was saved and restored on the way', () => {
    const step = fc.record({
      print: fc.constantFrom('a', 'b', 'c'),
      state: fc.constantFrom('active' as const, 'resolved' as const),
      severity: fc.constantFrom('info' as const, 'warning' as const, 'critical' as const),
      passed: fc.integer({ min: -200_000, max: 400_000 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(60), (steps, savedAt) => {
        const patience = { forMs: 60_000, keepFiringMs: 30_000 }
        const straight = engineWith(patience)
        let other = engineWith(patience)
        let at = NOON
        steps.forEach(({ print, state, severity, passed }, index) => {
          at += passed
          const one = finding(print, at, { state, severity })
          const wanted = said([...straight.accept(one, at), ...straight.advance(at)])
          expect(said([...other.accept(one, at), ...other.advance(at)])).toEqual(wanted)
          if (index === savedAt) {
            const saved = JSON.parse(JSON.stringify(other.snapshot())) as ReturnType<AlertEngine['snapshot']>
            expect(saved).toEqual(other.snapshot())
            other = engineWith(patience)
            other.restore(saved)
            // As detectors do after a restart: they repeat, late, what they found before.
            for (const record of saved.records)
              if (record.phase !== 'resolved' && record.clearMs === null)
                for (const engine of [straight, other]) engine.accept(record.finding, record.finding.at)
          }
        })
      }),
    )
  })
})
