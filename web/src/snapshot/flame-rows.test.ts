import { describe, expect, it } from 'vitest'
import { flameBoxes, neighbor, nodeAt } from './flame-rows.ts'

const leaf = (name: string, bytes: number) => ({ name, bytes, children: [] })
const root = {
  name: 'all',
  bytes: 100,
  children: [
    { name: 'a', bytes: 60, children: [{ name: 'b', bytes: 60, children: [leaf('c', 40), leaf('d', 20)] }] },
    leaf('e', 30),
    leaf('tiny', 0.1),
  ],
}

describe('a flame graph', () => {
  const boxes = flameBoxes(root, [])

  it('puts calls under their callers, as wide as what they hold, and chains into one box', () => {
    expect(boxes.map(({ names, depth, left, width }) => [names.join(), depth, left, width])).toEqual([
      ['all', 0, 0, 1],
      ['a,b', 1, 0, 0.6],
      ['c', 2, 0, expect.closeTo(0.4)],
      ['d', 2, expect.closeTo(0.4), expect.closeTo(0.2)],
      ['e', 1, 0.6, 0.3],
    ])
  })

  it('shows one call in full width', () => {
    expect(flameBoxes(root, [0, 0, 0]).map(({ names, width }) => [names.join(), width])).toEqual([['c', 1]])
    expect(nodeAt(root, [7, 7])).toBe(root)
  })

  it('is walked with the arrow keys', () => {
    const [all, a, c, d, e] = boxes as [(typeof boxes)[number], ...typeof boxes]
    expect(neighbor(boxes, all, 'ArrowDown')).toBe(a)
    expect(neighbor(boxes, a as typeof all, 'ArrowDown')).toBe(c)
    expect(neighbor(boxes, c as typeof all, 'ArrowRight')).toBe(d)
    expect(neighbor(boxes, d as typeof all, 'ArrowUp')).toBe(a)
    expect(neighbor(boxes, e as typeof all, 'ArrowDown')).toBe(e)
    expect(neighbor(boxes, all, 'ArrowUp')).toBe(all)
  })
})
