import { describe, expect, it } from 'vitest'
import type { AlertView } from '../../answers.ts'
import { suggestions } from './silence-matchers.ts'

const alert = { finding: { detector: 'thermal', subject: { gpu: 'GPU-1', user: null } } } as AlertView

describe('suggestions', () => {
  it('offers just this alert first, then wider ones', () => {
    expect(suggestions('f1', alert).map(({ matchers }) => matchers)).toEqual([
      'fingerprint=f1',
      'detector=thermal\ngpu=GPU-1',
      'detector=thermal',
    ])
  })

  it('knows only the fingerprint of one that is over', () => {
    expect(suggestions('f1', null)).toHaveLength(1)
    expect(suggestions(null, null)).toEqual([])
  })
})
