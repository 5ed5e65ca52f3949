import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { partAt, ribbonOf } from './ribbon.ts'

describe('a ribbon of segments', () => {
  it('shows every byte of every segment once, inside its width', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 2 ** 36 }), { maxLength: 80 }), fc.integer({ min: 40, max: 1400 }), (sizes, width) => {
        const { parts, rows } = ribbonOf(
          sizes.map((bytes) => ({ bytes })),
          width,
        )
        for (const [segment, bytes] of sizes.entries()) {
          const own = parts.filter((part) => part.segment === segment)
          expect(own[0]?.from).toBe(0)
          expect(own.at(-1)?.to).toBeCloseTo(bytes, -3)
          for (const [i, part] of own.entries()) if (i > 0) expect(part.from).toBeCloseTo(own[i - 1]?.to ?? -1, -3)
        }
        for (const { x, width: wide, row } of parts) {
          expect(x + wide).toBeLessThanOrEqual(width + 0.01)
          expect(row).toBeLessThan(rows)
        }
      }),
    )
  })

  it('knows what is under a point', () => {
    const ribbon = ribbonOf([{ bytes: 100 }, { bytes: 100 }], 60)
    expect(partAt(ribbon, 0, 5)?.segment).toBe(0)
    expect(partAt(ribbon, ribbon.rows - 1, 1)?.segment).toBe(1)
    expect(partAt(ribbon, 99, 1)).toBe(null)
  })
})
