import { describe, expect, it } from 'vitest'
import { ahead } from './words.ts'

describe('time ahead', () => {
  it('has digits only where they are worth something', () => {
    expect(ahead(12_000, 9200, 16_000)).toBe('in 12 s (9.2–16 s)')
    expect(ahead(252_000, 185_000, 400_000)).toBe('in 4 min (3–7 min)')
    expect(ahead(70_000, 50_000, 118_000)).toBe('in 1 min 10 s (50 s to 1 min 58 s)')
    expect(ahead(90_000, 70_000, Number.POSITIVE_INFINITY)).toBe('in 1 min 30 s (1 min 10 s or later)')
    expect(ahead(0, 0, 310)).toBe('within a second')
    expect(ahead(800, 0, 4000)).toBe('within a second, at the latest in 4 s')
  })
})
