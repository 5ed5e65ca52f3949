import { describe, expect, it } from 'vitest'
import { BoundedMap } from './bounded-map.ts'

describe('BoundedMap', () => {
  it('lets the oldest go, and what was touched is not the oldest', () => {
    const gone: [string, number][] = []
    const map = new BoundedMap<string, number>(2, { onEvict: (...entry) => gone.push(entry) })
    map.set('a', 1)
    map.set('b', 2)
    map.touch('a')
    map.touch('not there')
    expect(map.keep('c', 3)).toBe(3)
    expect(gone).toEqual([['b', 2]])
    expect([...map]).toEqual([
      ['a', 1],
      ['c', 3],
    ])
  })

  it.each([
    [false, 'keeps its place', ['b', 'c']],
    [true, 'becomes the newest', ['a', 'c']],
  ])('renewed %s: a key that is set again %s', (isRenewed, _, left) => {
    const map = new BoundedMap<string, number>(2, { isRenewed })
    map.set('a', 1).set('b', 2).set('a', 3)
    expect(map.size).toBe(2)
    map.set('c', 4)
    expect([...map.keys()]).toEqual(left)
  })

  it('gives copies, and takes them back within its cap', () => {
    const map = new BoundedMap<string, { n: number }>(2)
    const value = map.keep('a', { n: 1 })
    const saved = JSON.parse(JSON.stringify(map.saved())) as unknown
    value.n = 2
    map.load(saved)
    expect(map.get('a')).toEqual({ n: 1 })
    map.load([...'abc'].map((key) => [key, { n: 0 }]))
    expect([...map.keys()]).toEqual(['b', 'c'])
    expect(() => map.load({})).toThrow('expected saved entries')
  })
})
