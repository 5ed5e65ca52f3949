import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PickleWriter, Tuple, type WriterOptions } from '../../../bench/snapshot/pickle-writer.mjs'
import { flightDump } from '../../core/hang/flight-dump.ts'
import { flightVerdict } from '../../core/hang/flight-verdict.ts'
import { valuesOf } from './read-values.ts'

const RECORDED = fileURLToPath(new URL('../../../fixtures/flight-recorder', import.meta.url))
const recorded = (rank: number) => valuesOf(readFileSync(`${RECORDED}/gloo_rank_${rank}`))

describe('plain values of a pickle', () => {
  it('are what was written, by Python and by PyTorch', () => {
    const values = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.integer({ min: -(2 ** 31), max: 2 ** 40 }), fc.string(), fc.boolean(), tie('list'), tie('dict')),
      list: fc.array(tie('value'), { maxLength: 5 }),
      dict: fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        tie('value'),
        { maxKeys: 5 },
      ),
    })).value
    const writers: readonly WriterOptions[] = [{ writer: 'python' }, { writer: 'cpp' }]
    fc.assert(
      fc.property(values, fc.constantFrom(...writers), (value, options) => {
        expect(JSON.parse(JSON.stringify(valuesOf(PickleWriter.bytes([value], options))))).toEqual(JSON.parse(JSON.stringify([value])))
      }),
    )
    expect(valuesOf(PickleWriter.bytes([new Tuple(1, 'a'), Array.from({ length: 2500 }, (_, index) => index)]))).toMatchObject([
      [1, 'a'],
      { length: 2500 },
    ])
  })

  it('are refused where they import something, or are cut', () => {
    const evil = Buffer.from('\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.', 'latin1')
    expect(() => valuesOf(evil)).toThrow(/GLOBAL at byte 2 imports something: it was not run/)
    const whole = PickleWriter.bytes({ a: [1, 2, 3], b: 'text' })
    for (let length = 0; length < whole.length; length++) expect(() => valuesOf(whole.subarray(0, length))).toThrow()
  })

  it('never set what JavaScript inherits', () => {
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    valuesOf(PickleWriter.bytes(new Map([['__proto__', { polluted: true }]]) as never))
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('of real dumps name the rank that is missing', () => {
    const dumps = [0, 1, 2].map((rank) => flightDump(rank, recorded(rank)))
    const verdict = flightVerdict(dumps.filter((dump) => dump !== null))
    expect(verdict).toMatchObject({
      ranks: [0, 1, 2],
      culprits: [2],
      groups: [{ group: '0', matching: 4, fault: { kind: 'missing', seq: 5, ranks: [2] } }],
    })
  })
})
