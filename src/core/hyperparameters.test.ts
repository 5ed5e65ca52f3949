import { describe, expect, it } from 'vitest'
import { keptHyperparameters, MOST_HYPERPARAMETERS, mergedHyperparameters } from './hyperparameters.ts'

describe('hyperparameters', () => {
  it('are flat: numbers, text, true, false and null stay, the rest becomes text', () => {
    const given = { lr: 3e-4, name: 'adam', fused: true, seed: null, betas: [0.9, 0.95], model: { layers: 12, ffn: { act: 'gelu' } } }
    const flat = { lr: 3e-4, name: 'adam', fused: true, seed: null, betas: '[0.9,0.95]', 'model.layers': 12, 'model.ffn.act': 'gelu' }
    expect(keptHyperparameters(given)).toEqual(flat)
    for (const odd of [null, undefined, 7, 'text', [1]]) expect(keptHyperparameters(odd)).toEqual({})
  })

  it.each([
    [{ hub_token: 'abc' }, true],
    [{ WANDB_API_KEY: 'abc' }, true],
    [{ apiKey: 'abc' }, true],
    [{ password: 'abc' }, true],
    [{ db: { secret: 'abc' } }, true],
    [{ tracker: 'https://me:abc@mlflow.example' }, true],
    [{ anything: 'hf_abcdefghij' }, true],
    [{ pad_token: '<pad>' }, false],
    [{ tokenizer_name: 'gpt2' }, false],
    [{ max_tokens: 512 }, false],
    [{ sort_key: 'length' }, false],
    [{ keyword: 'x' }, false],
    [{ token: '' }, false],
  ])('are without secrets: %j', (given, isSecret) => {
    expect(Object.values(keptHyperparameters(given))[0] === '***').toBe(isSecret)
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
