import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { keptHyperparameters, MOST_HYPERPARAMETERS, mergedHyperparameters } from './hyperparameters.ts'

const EXAMPLES = JSON.parse(readFileSync(new URL('../../fixtures/hyperparameters.json', import.meta.url), 'utf8')) as [object, object][]

describe('hyperparameters', () => {
  it.each(EXAMPLES)('%j are kept as in Python', (given, kept) => {
    expect(keptHyperparameters(given)).toEqual(kept)
  })

  it('are nothing where nothing was given', () => {
    for (const odd of [null, undefined, 7, 'text', [1]]) expect(keptHyperparameters(odd)).toEqual({})
    expect(keptHyperparameters({ betas: [0.9, 0.95] })).toEqual({ betas: '[0.9,0.95]' })
  })

  it('are bounded', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`${'n'.repeat(300)}${at}`.slice(-150), 'v'.repeat(5000)]))
    const kept = keptHyperparameters(many)
    expect(Object.keys(kept).length).toBeLessThanOrEqual(MOST_HYPERPARAMETERS)
    expect(JSON.stringify(kept).length).toBeLessThan(64 * 1024)
    const deep = JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`) as unknown
    expect(JSON.stringify(keptHyperparameters(deep)).length).toBeLessThan(1000)
    expect(Object.keys(mergedHyperparameters(kept, { lr: 1 })).length).toBeLessThanOrEqual(MOST_HYPERPARAMETERS)
  })
})
