import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TrainingStep } from '../core/model.ts'
import { CURVE_FIELDS, Curve, MOST_CUSTOM } from './curve.ts'
import { MOST_CURVES, RankCurves } from './rank-curves.ts'
import { parseReceivedStep } from './step-line.ts'

function step(number: number, extra: object = {}): TrainingStep {
  const received = parseReceivedStep(JSON.stringify({ seq: 1, step: number, t: 1.76e12 + number, ...extra }), 'r', 0)
  if (typeof received === 'string') throw new Error(received)
  return received.step
}

describe('a curve', () => {
  it('keeps every step until it is full, then every second, and all that is not finite', () => {
    const curve = new Curve(64)
    for (let number = 0; number < 1000; number++) curve.add(step(number, { loss: number === 333 ? 'NaN' : number }))
    const [steps = [], at = [], loss = []] = curve.columns(['loss'])
    expect(steps.length).toBeLessThan(64)
    expect(curve.stride).toBe(16)
    expect(steps).toContain(333)
    expect(loss[steps.indexOf(333)]).toBeNaN()
    for (const [index, number] of steps.entries()) {
      if (number !== 333) expect(loss[index]).toBe(number)
      expect(at[index]).toBe(1.76e12 + (number ?? 0))
    }
  })

  it('keeps what is reported only now and then', () => {
    const curve = new Curve(64)
    for (let number = 0; number < 1000; number++)
      curve.add(step(number, number % 10 === 7 ? { loss: number, alloc: { active: number }, custom: { acc: number } } : {}))
    const [steps = [], , ...values] = curve.columns(['loss', 'memoryActiveBytes', 'custom:acc'])
    for (const column of values) {
      expect(column).not.toContain(null)
      column.forEach((value, index) => {
        const from = steps[index] ?? 0
        expect(value).toBeGreaterThanOrEqual(from)
        expect(value).toBeLessThan(steps[index + 1] ?? 1000)
      })
    }
  })

  it('distinguishes unknown from NaN and from 0, also after it was saved', () => {
    const value = fc.oneof(fc.constant(null), fc.constant('NaN'), fc.constant('-Infinity'), fc.constant(0), fc.double({ noNaN: true }))
    fc.assert(
      fc.property(fc.array(value, { maxLength: 60 }), (losses) => {
        const curve = new Curve(64)
        losses.forEach((loss, index) => {
          curve.add(step(index, { loss, phases: { data: index } }))
        })
        const again = Curve.from(JSON.parse(JSON.stringify(curve)), 64)
        for (const one of [curve, again]) {
          const [, , loss, data] = one.columns(['loss', 'phase:data'])
          expect(loss).toEqual(losses.map((given) => (given === null ? null : Number(given))))
          expect(data).toEqual(losses.map((_, index) => index))
        }
        again.add(step(losses.length))
        curve.add(step(losses.length))
        expect(again.columns(['loss'])).toEqual(curve.columns(['loss']))
      }),
    )
  })

  it('begins anew when what was saved cannot be read', () => {
    const good = new Curve(64)
    good.add(step(1, { loss: 2 }))
    const saved = JSON.parse(JSON.stringify(good)) as Record<string, unknown>
    for (const bad of [null, 'x', {}, { ...saved, length: 5 }, { ...saved, length: -1 }, { ...saved, head: {} }, { ...saved, stride: 0 }])
      expect(Curve.from(bad, 64).columns(['loss'])).toEqual([[], [], []])
    expect(Curve.from({ ...saved, fields: { loss: ['AAAA', 'AA'] } }, 64).columns(['loss'])).toEqual([[1], [1.76e12 + 1], [null]])
  })

  it('gives the steps of a range, in the order of time however they came', () => {
    const curve = new Curve(64)
    for (const number of [5, 6, 7, 1, 2, 8]) curve.add(step(number, { loss: number }))
    expect(curve.columns(['loss'], 2, 7)).toEqual([[2, 5, 6, 7], [2, 5, 6, 7].map((number) => 1.76e12 + number), [2, 5, 6, 7]])
  })
})

describe('the curves of many ranks', () => {
  const full = (rank: number, number: number) =>
    step(number, {
      rank,
      ...Object.fromEntries(['epoch', 'loss', 'lr', 'grad_norm', 'throughput', 'step_seconds'].map((name) => [name, number])),
      alloc: Object.fromEntries(
        ['allocated', 'reserved', 'active', 'inactive_split', 'peak_allocated', 'retries', 'ooms'].map((name) => [name, number]),
      ),
      phases: { data: 1, forward: 2, backward: 3 },
    })

  it('are kept of the 64 lowest, the lower the finer, whatever order they come in', () => {
    const curves = new RankCurves()
    for (let number = 0; number < 1500; number++)
      for (let rank = 79; rank >= 10; rank--) if (number % 7 === 0 || rank < 12) curves.add(full(rank, number))
    expect(curves.ranks).toEqual(Array.from({ length: MOST_CURVES }, (_, index) => index + 10))
    expect(curves.lowest).toBe(10)
    const points = (rank: number) => curves.of(rank)?.columns(['loss'])[0]?.length ?? 0
    expect([points(10), points(11), points(30)]).toEqual([750, 375, 108])
    expect(curves.of(79)).toBe(null)
  })

  it('take no more memory than is written down', () => {
    const curves = new RankCurves()
    for (let number = 0; number < 1200; number++)
      for (let rank = 0; rank < 64; rank++) if (rank < 8 || number < 200) curves.add(full(rank, number))
    expect(curves.names.length).toBe(CURVE_FIELDS.length + 3)
    // 18 columns of 9 bytes: 1024 + 7 × 512 + 56 × 128 points.
    expect(curves.bytes).toBeLessThanOrEqual(18 * 9 * (1024 + 7 * 512 + 56 * 128))
    const again = new RankCurves()
    again.restore(JSON.parse(JSON.stringify(curves)))
    expect(again.names).toEqual(curves.names)
    for (const rank of [0, 7, 63]) expect(again.of(rank)?.columns(curves.names)).toEqual(curves.of(rank)?.columns(curves.names))
  })

  it('hold a bounded number of names', () => {
    const curves = new RankCurves()
    const phases = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`p${index}`, index]))
    curves.add(step(1, { phases }))
    expect(curves.names.filter((name) => name.startsWith('phase:')).length).toBe(24)
    const curve = new Curve(64)
    for (let index = 0; index < 100; index++) curve.add(step(index, { custom: { [`m${index}`]: 1 } }))
    expect(
      curve
        .columns(['custom:m63', 'custom:m64'])
        .slice(2)
        .map((column) => column.some((value) => value !== null)),
    ).toEqual([true, false])
    expect(MOST_CUSTOM).toBe(64)
  })
})
