import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unsnappy } from './snappy.fixture.ts'
import { snappy } from './snappy.ts'

describe('snappy', () => {
  it('gives back every input', () => {
    // Few different bytes, so that there is something to find again.
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 3000 }), fc.uint8Array({ maxLength: 3000, max: 2 }))
    fc.assert(fc.property(bytes, (input) => Buffer.compare(unsnappy(snappy(input)), input) === 0))
  })

  it('gives back what is longer than a block', () => {
    const input = new Uint8Array(300_000).map((_, at) => (at * at) >> (at % 7))
    expect(Buffer.compare(unsnappy(snappy(input)), input)).toBe(0)
  })

  it('makes a page of metrics several times smaller', () => {
    const page = Array.from({ length: 500 }, (_, at) => `gpu_utilization_percent{gpu="${at % 8}",uuid="GPU-${at}"} ${at}\n`).join('')
    expect(snappy(new TextEncoder().encode(page)).length).toBeLessThan(page.length / 3)
  })
})
