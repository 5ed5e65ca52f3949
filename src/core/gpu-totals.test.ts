import { describe, expect, it } from 'vitest'
import { cardUtilization, countedOnce } from './gpu-totals.ts'
import { cardWith, sampleWith } from './model.fixture.ts'
import type { Reading } from './model.ts'

const card = (utilizationRatio: Reading, facts = {}) => ({
  info: cardWith(0, { id: 'a', migMode: 'enabled', ...facts }),
  sample: sampleWith('a', 0, { utilizationRatio, memoryTotalBytes: 80 }),
})
const instance = (gpuInstanceId: number, computeInstanceId: number, utilizationRatio: Reading, memoryTotalBytes = 40) => {
  const id = `a${gpuInstanceId}${computeInstanceId}`
  return {
    info: cardWith(0, { id, migMode: null, mig: { parentId: 'a', gpuInstanceId, computeInstanceId, profile: null } }),
    sample: sampleWith(id, 0, { utilizationRatio, memoryTotalBytes }),
  }
}

describe('countedOnce', () => {
  it('leaves out instances whose card is there', () => {
    const list = [card(null), instance(1, 0, 1), { info: cardWith(1, { id: 'b' }) }]
    expect(countedOnce(list).map(({ info }) => info.id)).toEqual(['a', 'b'])
    expect(countedOnce(list.slice(1)).map(({ info }) => info.id)).toEqual(['a10', 'b'])
  })
})

describe('cardUtilization', () => {
  it('is what the card says', () => {
    expect(cardUtilization(card(0.5, { migMode: 'disabled' }), [])).toBe(0.5)
    expect(cardUtilization(card(null, { migMode: 'disabled' }), [])).toBe(null)
  })

  it('is that of its instances in MIG mode, each GPU instance once and by its memory', () => {
    expect(cardUtilization(card(null), [instance(1, 0, 0.5), instance(1, 1, 0.5), instance(2, 0, 1, 20)])).toBe(0.5)
    expect(cardUtilization(card(null), [instance(1, 0, 1)])).toBe(0.5)
  })

  it('is unknown when one of them is, or there is none', () => {
    expect(cardUtilization(card(null), [instance(1, 0, 1), instance(2, 0, null)])).toBe(null)
    expect(cardUtilization(card(null), [])).toBe(null)
  })
})
