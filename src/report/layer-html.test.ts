import { describe, expect, it } from 'vitest'
import { layerSummary, standoutText } from '../core/layer-figures.ts'
import { layerTable } from './layer-html.ts'

const course = {
  layers: ['<b>up', 'down'],
  steps: [100, 200],
  values: {
    non_finite_share: [
      [0, 0.5],
      [0, 0],
    ],
  },
}

describe('the layers in a report', () => {
  it('are those that stand out', () => {
    const summary = layerSummary(course)
    expect(summary).toMatchObject({ layers: 2, looks: 2, lastStep: 200, standouts: [{ layer: '<b>up', step: 200, value: 0.5 }] })
    expect(summary?.standouts.map(standoutText)).toEqual(['<b>up has values that are not finite, step 200'])
    expect(layerTable(summary)).toContain('<td>&lt;b&gt;up</td>')
    expect(layerTable(summary)).toContain('50%')
  })

  it('may be none', () => {
    expect(layerTable(layerSummary({ ...course, values: {} }))).toContain('None stands out')
    expect(layerTable(layerSummary({ layers: [], steps: [], values: {} }))).toBe('')
    expect(layerTable(null)).toBe('')
  })
})
