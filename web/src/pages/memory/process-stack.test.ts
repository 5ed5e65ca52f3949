import { describe, expect, it } from 'vitest'
import { processStack } from './process-stack.ts'

const process = (pid: number, memoryUsedBytes: readonly (number | null)[]) => ({
  pid,
  startedAt: pid,
  user: 'ada',
  name: 'python',
  command: null,
  memoryUsedBytes,
})
const answer = (processes: readonly ReturnType<typeof process>[]) => ({ gpu: 'g', stepMs: 10, at: [0, 10, 20, 30], processes })
const device = { at: [1, 11, 21], used: [5, 5, 5] }

describe('processStack', () => {
  it('puts the largest first and names the owner', () => {
    const { layers, rows } = processStack(answer([process(1, [1, 1, 1, 1]), process(2, [9, 9, 9, null])]), device)
    expect(layers.map(({ label }) => label)).toEqual(['python 2 (ada)', 'python 1 (ada)'])
    expect(rows.map(({ pid, nowBytes, peakBytes }) => [pid, nowBytes, peakBytes])).toEqual([
      [2, null, 9],
      [1, 1, 1],
    ])
  })

  it('distinguishes an empty list from an unread one', () => {
    const { layers } = processStack(answer([process(1, [7, null, 7, null])]), device)
    expect(layers[0]?.values).toEqual([7, 0, 7, null])
  })

  it('counts a process that is not there as nothing beside one that is', () => {
    const { layers } = processStack(answer([process(1, [7, 7, 7, 7]), process(2, [null, 3, null, null])]), { at: [], used: [] })
    expect(layers[1]?.values).toEqual([0, 3, 0, 0])
  })

  it('adds up those for which there is no color left', () => {
    const many = Array.from({ length: 12 }, (_, index) => process(index, [index + 1, null, 1, 1]))
    const { layers, rows } = processStack(answer(many), device)
    expect(layers).toHaveLength(8)
    expect(layers[7]).toEqual({ label: '5 others', values: [1 + 2 + 3 + 4 + 5, 0, 5, 5] })
    expect(rows.filter(({ color }) => color === null)).toHaveLength(5)
  })
})
