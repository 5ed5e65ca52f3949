import { expect, it } from 'vitest'
import { differingSettings } from './differing-settings.ts'

it('compared runs show the hyperparameters in which they differ', () => {
  const [a, b] = [
    { lr: 0.1, batch: 8, name: 'adam' },
    { lr: 0.2, batch: 8, fused: true, name: 'adam' },
  ]
  expect(differingSettings([a, b])).toEqual([
    { name: 'lr', values: [0.1, 0.2] },
    { name: 'fused', values: [undefined, true] },
  ])
  expect(differingSettings([a, {}, b]).map(({ name }) => name)).toEqual(['lr', 'fused'])
  expect(differingSettings([a, {}])).toEqual([])
  expect(differingSettings([])).toEqual([])
})
