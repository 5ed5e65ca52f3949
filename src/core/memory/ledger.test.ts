import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ledgerOf } from './ledger.ts'

const GIB = 1024 ** 3
const reading = fc.option(fc.oneof(fc.nat(200 * GIB), fc.constant(Number.NaN), fc.integer({ min: -5, max: 5 })), { nil: null })
const allocator = fc.record({
  pid: fc.option(fc.nat(5), { nil: null }),
  allocatedBytes: reading,
  reservedBytes: reading,
  activeBytes: reading,
  inactiveSplitBytes: reading,
  requestedBytes: reading,
})

describe('ledger', () => {
  it('always adds up to the total, whatever is missing or does not fit', () => {
    fc.assert(
      fc.property(
        fc.record({
          totalBytes: fc.integer({ min: 1, max: 200 * GIB }),
          usedBytes: reading,
          driverReservedBytes: reading,
          processes: fc.option(fc.array(fc.record({ pid: fc.nat(5), memoryUsedBytes: reading }), { maxLength: 5 }), { nil: null }),
          allocators: fc.array(allocator, { maxLength: 4 }),
          isOfHost: fc.boolean(),
          freeBytes: reading,
        }),
        (input) => {
          const ledger = ledgerOf(input)
          const sum = ledger?.entries.reduce((total, entry) => total + entry.bytes, 0)
          expect(sum).toBe(input.totalBytes)
          for (const entry of ledger?.entries ?? []) {
            expect(entry.bytes).toBeGreaterThanOrEqual(0)
            expect(entry.explanation).toMatch(/\.$/)
          }
        },
      ),
    )
  })

  it('calls memory of the host free only as far as the rest of the machine leaves it', () => {
    const shared = { totalBytes: 32 * GIB, usedBytes: GIB, driverReservedBytes: null, processes: null, allocators: [], freeBytes: 20 * GIB }
    const bytesOf = (isOfHost: boolean) => ledgerOf({ ...shared, isOfHost })?.entries.map(({ name, bytes }) => [name, bytes / GIB])
    expect(bytesOf(true)).toEqual([
      ['other', 12],
      ['free', 20],
    ])
    expect(bytesOf(false)).toEqual([
      ['other', 1],
      ['free', 31],
    ])
  })

  it('says where the memory of a recorded card was', () => {
    const ledger = ledgerOf({
      totalBytes: 140 * GIB,
      usedBytes: 120 * GIB,
      driverReservedBytes: 1 * GIB,
      processes: [
        { pid: 7, memoryUsedBytes: 100 * GIB },
        { pid: 8, memoryUsedBytes: 15 * GIB },
      ],
      allocators: [
        {
          pid: 7,
          allocatedBytes: 60 * GIB,
          reservedBytes: 98 * GIB,
          activeBytes: 61 * GIB,
          inactiveSplitBytes: 5 * GIB,
          requestedBytes: 59 * GIB,
        },
      ],
    })
    const gib = Object.fromEntries((ledger?.entries ?? []).map((entry) => [entry.name, entry.bytes / GIB]))
    expect(gib).toEqual({
      torch_allocated: 59,
      torch_rounding: 1,
      torch_pending_free: 1,
      torch_inactive_split: 5,
      torch_releasable_cache: 32,
      non_torch: 2,
      other_processes: 15,
      other: 5,
      driver_reserve: 1,
      free: 19,
    })
    expect(ledger?.adjusted).toBe(false)
  })

  it('is null without a total, and cuts what does not fit, saying so', () => {
    expect(ledgerOf({ totalBytes: null, usedBytes: 1, driverReservedBytes: null, processes: null, allocators: [] })).toBe(null)
    const ledger = ledgerOf({
      totalBytes: 10,
      usedBytes: 8,
      driverReservedBytes: 0,
      processes: [{ pid: 1, memoryUsedBytes: 20 }],
      allocators: [],
    })
    expect(ledger?.adjusted).toBe(true)
  })
})
