import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createExporter } from './exporter.ts'
import { readExposition } from './exposition.contract.ts'
import { agentState, gpuInfo, gpuView, naming, processInfo, processView } from './fixed-state.contract.ts'
import { fairShares } from './processes.ts'

const A = gpuInfo({ id: 'GPU-a', label: '0' })
const B = gpuInfo({ id: 'GPU-b', label: '1' })

function memory(processes: readonly ReturnType<typeof processView>[], maxProcesses: number) {
  const state = agentState({ gpus: () => [gpuView(A, {}), gpuView(B, {})], processes: () => processes })
  const { series } = readExposition(createExporter({ naming, state, sets: ['native'], maxProcesses }).render())
  return series
    .filter(({ name }) => name === 'gpu_process_memory_bytes')
    .map(({ labels, value }) => [labels.gpu, labels.pid, labels.process, value])
}

describe('processes', () => {
  it('are named up to the limit, the largest first, and the others summed', () => {
    const many = [1, 2, 3, 4, 5].map((pid) =>
      processView({ gpu: A.id, pid, memoryUsedBytes: pid * 100, info: processInfo(pid, 'ada', `p${pid}`) }),
    )
    const one = processView({ gpu: B.id, pid: 9, memoryUsedBytes: 1 })
    expect(memory([...many, one], 3)).toEqual([
      ['0', '5', 'p5', 500],
      ['0', '4', 'p4', 400],
      ['0', '', 'other', 600],
      ['1', '9', '', 1],
    ])
    expect(memory([...many, one], 0)).toEqual([
      ['0', '', 'other', 1500],
      ['1', '', 'other', 1],
    ])
  })

  it('whose memory is unknown are absent, not 0', () => {
    const unknown = processView({ gpu: A.id, pid: 1 })
    expect(memory([unknown], 64)).toEqual([])
    expect(memory([unknown], 0)).toEqual([])
  })

  it('that are listed twice are one series', () => {
    const twice = [10, 20].map((memoryUsedBytes) => processView({ gpu: A.id, pid: 1, memoryUsedBytes }))
    expect(memory(twice, 64)).toEqual([['0', '1', '', 20]])
  })

  it('on a GPU that nobody listed are left out', () => {
    expect(memory([processView({ gpu: 'GPU-unknown', pid: 1, memoryUsedBytes: 5 })], 64)).toEqual([])
  })

  it('share the places fairly', () => {
    expect(fairShares([100, 1, 3], 10)).toEqual([6, 1, 3])
    fc.assert(
      fc.property(fc.array(fc.nat(50), { maxLength: 9 }), fc.nat(100), (needs, total) => {
        const shares = fairShares(needs, total)
        expect(shares.every((share, at) => share <= (needs[at] ?? 0))).toBe(true)
        const sum = shares.reduce((left, right) => left + right, 0)
        expect(sum).toBeLessThanOrEqual(total)
        const wanted = needs.reduce((left, right) => left + right, 0)
        if (wanted <= total) expect(sum).toBe(wanted)
        else expect(sum).toBe(total)
      }),
    )
  })
})
