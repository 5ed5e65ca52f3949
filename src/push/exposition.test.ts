import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readPage } from './exposition.ts'

const GOLDEN = readFileSync(new URL('../exporter/all-sets.golden.txt', import.meta.url), 'utf8')

describe('readPage', () => {
  it('finds every line of the whole page', () => {
    const families = readPage(GOLDEN)
    const lines = GOLDEN.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(families.flatMap(({ series }) => series.map(({ key }) => key))).toEqual(
      lines.map((line) => line.slice(0, line.lastIndexOf(' '))),
    )
    expect(families.find(({ name }) => name === 'gpu_energy_joules_total')?.type).toBe('counter')
    expect(families.find(({ name }) => name === 'training_run_info')?.series[0]?.labels).toContainEqual(['name', 'gemma "3n"'])
  })

  it('reads any label value back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (value) => {
        const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
        const [family] = readPage(`# HELP a b\n# TYPE a gauge\na{x="${escaped}",y="} "} 1\n`)
        expect(family?.series[0]?.labels).toEqual([
          ['x', value],
          ['y', '} '],
        ])
      }),
    )
  })

  it('reads NaN and infinities', () => {
    const [family] = readPage('# HELP a b\n# TYPE a gauge\na NaN\na{b="1"} +Inf\na{b="2"} -Inf\na{b="3"} 1e+21\n')
    expect(family?.series.map(({ value }) => value)).toEqual([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e21])
  })

  it('throws at half a page', () => {
    for (const text of ['a 1\n', '# TYPE a gauge\na{b="', '# TYPE a gauge\na{b="1"} x\n', '# TYPE a gauge\na\n'])
      expect(() => readPage(text)).toThrow(/expected/)
  })
})
