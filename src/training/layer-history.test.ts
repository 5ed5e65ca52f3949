import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { standouts } from '../core/layer-figures.ts'
import { LayerHistory } from './layer-history.ts'
import { type LayerLook, readLayers } from './layer-line.ts'

function look(names: readonly string[], figures: Readonly<Record<string, readonly (number | string | null)[]>>): LayerLook {
  const read = readLayers({ names, ...figures })
  if (typeof read === 'string') throw new Error(read)
  return read
}

const norms = (...values: (number | string | null)[]) => look(['a', 'b', 'c'].slice(0, values.length), { gradient_norm: values })

function restoredFrom(history: LayerHistory): LayerHistory {
  const again = new LayerHistory()
  again.restore(JSON.parse(history.takeChanged() ?? 'null'))
  return again
}

describe('the figures of layers', () => {
  it('come back by layer and step, also after a restart', () => {
    const history = new LayerHistory()
    history.add(0, 100, 1000, norms(1, null, 'NaN'))
    history.add(0, 200, 2000, norms(2, 0.5, 3))
    for (const one of [history, restoredFrom(history)])
      expect(one.course(0)).toEqual({
        layers: ['a', 'b', 'c'],
        steps: [100, 200],
        at: [1000, 2000],
        stride: 1,
        brokeFirst: null,
        values: {
          gradient_norm: [
            [1, 2],
            [null, 0.5],
            [Number.NaN, 3],
          ],
        },
      })
    expect(history.takeChanged()).toBe(null)
    history.markChanged()
    expect(history.takeChanged()).not.toBe(null)
  })

  it('stay bounded, and keep the looks in which something was not finite', () => {
    const history = new LayerHistory()
    for (let step = 0; step < 5000; step++)
      history.add(0, step, step, look(['a'], { gradient_norm: [step], non_finite_share: [step === 777 ? 0.5 : 0] }))
    const { steps = [], stride = 0 } = history.course(0) ?? {}
    expect(steps.length).toBeLessThan(128)
    expect(stride).toBeGreaterThanOrEqual(5000 / 128)
    expect(steps).toContain(777)
    expect(steps[0]).toBe(0)
  })

  it('are kept of the lowest four ranks', () => {
    const history = new LayerHistory()
    for (const rank of [9, 3, 7, 5, 1, 8]) history.add(rank, 1, 1, norms(1))
    expect(history.ranks).toEqual([1, 3, 5, 7])
  })

  it('replace what a resumed run repeats, and begin again with another model', () => {
    const history = new LayerHistory()
    for (const step of [100, 200, 300]) history.add(0, step, step, norms(step))
    history.add(0, 200, 900, norms(7))
    expect(history.course(0)?.steps).toEqual([100, 200])
    expect(history.course(0)?.values.gradient_norm).toEqual([[100, 7]])
    history.add(0, 300, 901, norms(1, 2))
    expect(history.course(0)?.steps).toEqual([300])
  })

  it('are refused where they are not what they should be', () => {
    expect(readLayers({ names: [] })).toContain('layers.names')
    expect(readLayers({ names: Array.from({ length: 257 }, String) })).toContain('256')
    expect(readLayers({ names: ['a', 'b'], gradient_norm: [1] })).toBe('layers.gradient_norm: expected 2 numbers')
    expect(readLayers(7)).toContain('layers.names')
  })

  it('never come from a damaged file', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (file) => {
        const history = new LayerHistory()
        history.restore(file)
        history.restore({ ranks: [[0, file]] })
        expect(history.ranks.length).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe('layers that stand out', () => {
  const calm = [1, 1.2, 0.9, 1.1, 1]
  const names = ['a', 'b', 'c', 'd', 'e']
  const of = (figures: Readonly<Record<string, readonly (readonly number[])[]>>) =>
    standouts({ layers: names, steps: [100, 200], values: figures }).map(({ layer, figure, step }) => `${layer} ${figure} ${step}`)

  it('are none where all is well', () => {
    expect(of({ gradient_norm: calm.map((norm) => [norm, norm]), update_ratio: calm.map(() => [1e-3, 1e-3]) })).toEqual([])
  })

  it('are those that are not finite, the first one first', () => {
    expect(
      of({
        non_finite_share: [
          [0, 0],
          [0, 1],
          [0.1, 1],
          [0, 0],
          [0, 0],
        ],
      }),
    ).toEqual(['c non_finite_share 100', 'b non_finite_share 200'])
  })

  it('name the one that the SDK found, not those that it broke', () => {
    const history = new LayerHistory()
    history.add(0, 100, 1, look(names, { non_finite_share: [0, 0, 0, 0, 0] }))
    history.add(0, 200, 2, look(names, { non_finite_share: [1, 1, 1, 1, 1] }))
    history.noteBroken(0, 200, { layer: 'd', part: 'weights' })
    const course = restoredFrom(history).course(0)
    expect(course && standouts(course)).toMatchObject([{ layer: 'd', step: 200, reason: 'was the first with weights that are not finite' }])
  })

  it('are those with an exploded or a vanished gradient, a fast update, dead outputs, collapsed attention', () => {
    expect(
      of({
        gradient_norm: [
          [1, 1],
          [1, 400],
          [1, 1],
          [1, 1e-6],
          [1, 1],
        ],
      }),
    ).toEqual(['b gradient_norm 200', 'd gradient_norm 200'])
    expect(
      of({
        update_ratio: [
          [1e-3, 1e-3],
          [1e-3, 0.3],
          [0, 0],
          [0, 0],
          [0, 0],
        ],
      }),
    ).toEqual(['b update_ratio 200'])
    expect(
      of({
        dead_share: [
          [0.5, 0.5],
          [0.5, 0.99],
          [0, 0],
          [0, 0],
          [0, 0],
        ],
      }),
    ).toEqual(['b dead_share 200'])
    expect(
      of({
        attention_entropy: [
          [2, 2],
          [2, 0.001],
          [2, 2],
          [2, 2],
          [2, 2],
        ],
      }),
    ).toEqual(['b attention_entropy 200'])
  })
})
