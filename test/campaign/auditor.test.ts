/** The auditor must find what a campaign is for: each test plants one fault in a world that is otherwise right. */
import { describe, expect, it } from 'vitest'
import { audit, type FaultKind } from './auditor.ts'
import { countStep, emptyLedger, type Ledger, type PlayedRank, type Receipt } from './ledger.ts'
import type { Ending, Play } from './schedule.ts'

const T = 1_000_000
const RUN = 'run-1'
const STEPS = 40
const THERMAL = 'thermal|gpu=GPU-0'

function receipt(
  channel: Receipt['channel'],
  id: string,
  at: number,
  fingerprint: string,
  status: string,
  more: Partial<Receipt> = {},
): Receipt {
  const detector = fingerprint.replace(/\|.*/, '')
  return {
    ...{
      channel,
      id,
      at,
      isAcknowledged: true,
      isHeard: true,
      detectors: [detector],
      statuses: [status],
      gpus: ['0'],
      text: 'Run play: it is so.',
    },
    alerts: channel === 'mail' ? [] : [{ fingerprint, status, severity: 'critical', firedAt: '2026-01-01T00:00:00Z' }],
    ...more,
  }
}

function alertOf(fingerprint: string) {
  return { fingerprint, status: 'firing', severity: 'critical', firedAt: '2026-01-01T00:00:00Z' }
}

function both(id: string, at: number, fingerprint: string, status: string): Receipt[] {
  return [receipt('webhook', `w${id}`, at, fingerprint, status), receipt('mail', `m${id}`, at, fingerprint, status)]
}

/** A run with NaN that failed, and a GPU that was hot: all of it stored and delivered over one kill. */
function rightWorld(ending: Ending = 'failed'): Ledger {
  const ledger = emptyLedger()
  const play: Play = { at: 0, name: 'play', id: null, ranks: 1, steps: STEPS, perSecond: 10, nan: { from: 5, steps: 2 }, ending }
  const rank: PlayedRank = {
    ...{ rank: 0, run: RUN, logged: STEPS, dropped: 0, rejected: 0 },
    ...{ nanAt: T + 1000, finiteAt: T + 4000, endedAt: T + 6000 },
  }
  ledger.played.push({ play, ranks: [rank] })
  for (let step = 0; step < STEPS; step++) for (const counts of [ledger.acknowledged, ledger.stored]) countStep(counts, RUN, 0, step)
  ledger.runs.set(RUN, { outcome: ending === 'failed' ? 'failed' : 'success', steps: STEPS })
  ledger.reported.set(RUN, STEPS)
  ledger.lives.push({ startedAt: T, endedAt: T + 5000, end: 'killed' }, { startedAt: T + 5100, endedAt: T + 90_000, end: 'stopped' })
  ledger.ailing.push({
    ailment: { at: 0, kind: 'thermal', gpu: 0, holdMs: 0 },
    ...{ fingerprint: THERMAL, beganAt: T + 500, firingAt: T + 8000, clearedAt: T + 20_000 },
  })
  ledger.shown.set(THERMAL, T + 8000)
  ledger.receipts.push(
    ...both('1', T + 1500, `loss_nan|run=${RUN}`, 'firing'),
    ...both('2', T + 8000, `loss_nan|run=${RUN}`, 'resolved'),
    ...(ending === 'failed' ? both('3', T + 6500, `run_died|run=${RUN}`, 'firing') : []),
    ...both('4', T + 8500, THERMAL, 'firing'),
    ...both('5', T + 25_000, THERMAL, 'resolved'),
  )
  return ledger
}

const kinds = (ledger: Ledger): FaultKind[] => audit(ledger).faults.map(({ kind }) => kind)
const without = (ledger: Ledger, ...ids: string[]): Ledger => ({
  ...ledger,
  receipts: ledger.receipts.filter(({ id }) => !ids.includes(id)),
})

describe('the auditor', () => {
  it('finds nothing in a world that is right', () => {
    expect(kinds(rightWorld())).toEqual([])
    expect(kinds(rightWorld('success'))).toEqual([])
    expect(audit(rightWorld()).figures).toMatchObject({
      'agent kills': 1,
      'steps stored': STEPS,
      lost: 0,
      doubled: 0,
      'falsely resolved': 0,
    })
  })

  it('finds a step that was acknowledged and is not in the log', () => {
    const ledger = rightWorld()
    ledger.stored.get(`${RUN} 0`)?.delete(17)
    expect(kinds(ledger)).toContain('step lost')
  })

  it('finds a step that was logged by a process that ended well, though nobody acknowledged it', () => {
    const ledger = rightWorld()
    ledger.acknowledged.get(`${RUN} 0`)?.delete(17)
    ledger.stored.get(`${RUN} 0`)?.delete(17)
    expect(kinds(ledger)).toContain('step lost')
  })

  it('finds a step that is in the log twice, and one that nobody logged', () => {
    const ledger = rightWorld()
    countStep(ledger.stored, RUN, 0, 3)
    expect(kinds(ledger)).toEqual(['step doubled'])
    const other = rightWorld()
    countStep(other.stored, RUN, 0, STEPS + 1)
    expect(kinds(other)).toContain('step invented')
  })

  it('finds a spool that nobody took, a wrong outcome and a wrong report', () => {
    expect(kinds({ ...rightWorld(), leftSpools: ['run.jsonl'] })).toEqual(['step lost'])
    const ledger = rightWorld()
    ledger.runs.set(RUN, { outcome: 'success', steps: STEPS })
    ledger.reported.set(RUN, STEPS - 1)
    expect(kinds(ledger)).toEqual(['run wrong', 'run wrong'])
  })

  it.each(['w1', 'm1', 'w3', 'm3', 'w4', 'm4'])('finds an alert that never arrived: %s', (id) => {
    expect(kinds(without(rightWorld(), id))).toEqual(['alert lost'])
  })

  it('does not take a refused message for a delivered one', () => {
    const ledger = rightWorld()
    for (const one of ledger.receipts) if (one.id === 'w4') one.isAcknowledged = false
    expect(kinds(ledger)).toEqual(['alert lost'])
  })

  it('finds an alert that was shown and reached nobody, and a GPU that nobody noticed', () => {
    const ledger = rightWorld()
    ledger.shown.set('throttle|gpu=GPU-3', T + 9000)
    expect(kinds(ledger)).toEqual(['alert lost'])
    const other = rightWorld()
    for (const one of other.ailing) one.firingAt = null
    expect(kinds(other)).toEqual(['alert lost'])
  })

  it.each(['w5', 'm5', 'w2', 'm2'])('finds a recovery that never arrived: %s', (id) => {
    expect(kinds(without(rightWorld(), id))).toEqual(['never resolved'])
  })

  it('waits for an alert that nobody has confirmed since a restart', () => {
    const ledger = without(rightWorld(), 'w5', 'm5')
    ledger.firing.set(THERMAL, true)
    expect(kinds(ledger)).toEqual([])
    ledger.firing.set(THERMAL, false)
    expect(kinds(ledger)).toEqual(['never resolved', 'never resolved'])
  })

  it('finds an alert that is resolved while its problem lasts', () => {
    const hot = rightWorld()
    hot.receipts.push(receipt('webhook', 'w6', T + 12_000, THERMAL, 'resolved'))
    expect(kinds(hot)).toEqual(['falsely resolved'])
    const nan = rightWorld()
    nan.receipts.push(receipt('webhook', 'w7', T + 2000, `loss_nan|run=${RUN}`, 'resolved'))
    expect(kinds(nan)).toEqual(['falsely resolved'])
    const dead = rightWorld()
    dead.receipts.push(receipt('webhook', 'w8', T + 30_000, `run_died|run=${RUN}`, 'resolved'))
    expect(kinds(dead)).toEqual(['falsely resolved'])
    // Known better: it is over, and dead for another reason.
    dead.receipts.push(
      receipt('webhook', 'w10', T + 31_000, `run_died|run=${RUN}`, 'firing', {
        alerts: [{ ...alertOf(`run_died|run=${RUN}`), firedAt: '2026-01-01T00:01:00Z' }],
      }),
    )
    expect(kinds(dead)).toEqual([])
  })

  it('allows one message again after a kill, not two, and none from the same process', () => {
    const again = (id: string, at: number) => receipt('webhook', id, at, `loss_nan|run=${RUN}`, 'firing')
    const once = rightWorld()
    once.receipts.push(again('w1', T + 5500))
    expect(kinds(once)).toEqual([])
    const same = rightWorld()
    same.receipts.splice(1, 0, again('w1', T + 1700))
    expect(kinds(same)).toEqual(['alert repeated'])
    const twice = rightWorld()
    twice.receipts.splice(1, 0, receipt('webhook', 'w0', T + 1600, 'throttle|gpu=GPU-3', 'firing'))
    twice.receipts.push(again('w1', T + 5500), receipt('webhook', 'w0', T + 5600, 'throttle|gpu=GPU-3', 'firing'))
    expect(kinds(twice)).toEqual(['alert repeated'])
    twice.fullDisks.push({ from: T + 2000, to: T + 4900 })
    expect(audit(twice).faults).toMatchObject([{ isExcused: false }])
    twice.fullDisks.push({ from: T + 4900, to: T + 5100 })
    expect(audit(twice).faults).toMatchObject([{ isExcused: true }])
  })

  it('finds one problem in two different messages, unless the agent was killed in between while the disk was full', () => {
    const ledger = rightWorld()
    ledger.receipts.push(receipt('webhook', 'w9', T + 7000, `loss_nan|run=${RUN}`, 'firing'))
    expect(audit(ledger).faults).toMatchObject([{ kind: 'alert doubled', isExcused: false }])
    ledger.fullDisks.push({ from: T + 2000, to: T + 3000 })
    expect(audit(ledger).faults).toMatchObject([{ kind: 'alert doubled', isExcused: false }])
    ledger.fullDisks.push({ from: T + 4500, to: T + 5500 })
    expect(audit(ledger).faults).toMatchObject([{ kind: 'alert doubled', isExcused: true }])
  })

  it('excuses a loss only where the agent was killed while it could not write', () => {
    const ledger = without(rightWorld(), 'w1')
    expect(audit(ledger).faults).toMatchObject([{ kind: 'alert lost', isExcused: false }])
    ledger.fullDisks.push({ from: T + 2000, to: T + 3000 })
    expect(audit(ledger).faults).toMatchObject([{ isExcused: false }])
    ledger.fullDisks.push({ from: T + 4000, to: T + 5500 })
    expect(audit(ledger).faults).toMatchObject([{ isExcused: true }])
  })

  it('finds an alert about a run that went well, and an agent that ended by itself', () => {
    const ledger = rightWorld('success')
    ledger.receipts.push(...both('6', T + 9000, `run_died|run=${RUN}`, 'firing'))
    expect(kinds(ledger)).toEqual([])
    ledger.firing.set(`run_died|run=${RUN}`, false)
    expect(kinds(ledger)).toEqual(['false alarm'])
    const hot = rightWorld('success')
    hot.receipts.push(...both('7', T + 9000, 'thermal|gpu=GPU-5', 'firing'))
    expect(kinds(hot)).toEqual(['false alarm'])
    const crashed = rightWorld()
    crashed.lives.push({ startedAt: T + 90_000, endedAt: T + 91_000, end: 'crashed' })
    expect(kinds(crashed)).toEqual(['agent ended'])
  })
})
