import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StepRing } from './step-ring.ts'

describe('ring of steps', () => {
  it('has the largest of each step, and nothing where nothing was put', () => {
    const ring = new StepRing(4)
    expect(ring.get(0)).toBeNull()
    ring.put(10, 2048)
    ring.put(10, 1024)
    ring.put(12, 0)
    expect([9, 10, 11, 12, 13].map((step) => ring.get(step))).toEqual([null, 2048, null, 0, null])
    ring.put(14, 4096)
    expect([10, 11, 12, 13, 14].map((step) => ring.get(step))).toEqual([null, null, 0, null, 4096])
    ring.put(1000, 1024)
    expect([12, 14, 996, 997, 1000].map((step) => ring.get(step))).toEqual([null, null, null, null, 1024])
  })

  it('keeps to the KiB, up to 4 TiB', () => {
    const ring = new StepRing(1)
    ring.put(1, 80 * 2 ** 30 + 600)
    expect(ring.get(1)).toBe(80 * 2 ** 30 + 1024)
    ring.put(2, 2 ** 60)
    expect(ring.get(2)).toBe((2 ** 32 - 2) * 1024)
  })

  it('remembers what a list would, with a clock that is set back too', () => {
    const capacity = 5
    const puts = fc.array(fc.tuple(fc.integer({ min: -20, max: 20 }), fc.nat(100)), { maxLength: 40 })
    fc.assert(
      fc.property(puts, (all) => {
        const ring = new StepRing(capacity)
        let model = new Map<number, number>()
        let last = Number.NaN
        for (const [step, kib] of all) {
          ring.put(step, kib * 1024)
          model = new Map([...model].filter(([known]) => known <= step && known > step - capacity))
          // Before the window of the time when it was put: forgotten by then.
          if (step <= last - capacity) model.clear()
          model.set(step, Math.max(model.get(step) ?? 0, kib * 1024))
          last = step
          for (let one = -30; one <= 30; one++) expect(ring.get(one)).toBe(model.get(one) ?? null)
        }
      }),
    )
  })
})
