import { describe, expect, it } from 'vitest'
import { readOomReport } from '../../../../src/core/memory/oom-report.ts'
import { oomParts } from './oom-parts.ts'

const GIB = 1024 ** 3
const partsOf = (ledger: unknown) => {
  const report = readOomReport({ kind: 'oom', message: 'CUDA out of memory', ledger })
  if (report === null) throw new Error('no report')
  return oomParts(report)
}

describe('the ledger of memory that ran out', () => {
  it('has its parts by size, with shares of all of it', () => {
    const ledger = partsOf([
      { name: 'torch_inactive_split', bytes: GIB, explanation: 'Pieces.' },
      { name: 'torch_releasable_cache', bytes: 0, explanation: 'Nothing.' },
      { name: 'torch_allocated', bytes: 8 * GIB, explanation: 'Tensors.' },
      { name: 'something_new', bytes: GIB },
      { name: 'free', bytes: 0 },
    ])
    expect(ledger?.parts).toEqual([
      { name: 'torch_allocated', label: 'Tensors', size: '8.0 GiB', ratio: 0.8, share: '80%', explanation: 'Tensors.' },
      { name: 'torch_inactive_split', label: 'Fragmented', size: '1.0 GiB', ratio: 0.1, share: '10%', explanation: 'Pieces.' },
      { name: 'something_new', label: 'something new', size: '1.0 GiB', ratio: 0.1, share: '10%', explanation: '' },
      { name: 'free', label: 'Free', size: '0 B', ratio: 0, share: '0%', explanation: '' },
    ])
    expect(ledger?.total).toBe('10.0 GiB')
    expect(ledger?.words).toBe('Tensors 8.0 GiB, Fragmented 1.0 GiB, something new 1.0 GiB, Free 0 B')
  })

  it('is none where nothing was reported', () => {
    expect(partsOf([])).toBe(null)
    expect(partsOf({ torch: 5 })).toBe(null)
    expect(partsOf([{ name: 'free', bytes: 0 }])).toBe(null)
  })
})
