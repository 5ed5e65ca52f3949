import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fileName, parseFileName, STREAMS } from './file-name.ts'

describe('file names', () => {
  it('carry stream, time in UTC, PID and number', () => {
    const at = Date.UTC(2025, 6, 30, 12, 34, 56)
    expect(fileName('gpu_metrics', at, null, 1)).toBe('gpu_metrics_20250730_123456.jsonl')
    expect(fileName('findings', at, 4242, 2)).toBe('findings_20250730_123456_p4242_2.jsonl')
  })

  it('are read back as they were made', () => {
    const property = fc.property(
      fc.constantFrom(...STREAMS),
      fc.integer({ min: 0, max: Date.UTC(9999, 0) / 1000 - 1 }),
      fc.option(fc.nat()),
      fc.integer({ min: 1, max: 999 }),
      fc.boolean(),
      (stream, second, pid, attempt, compressed) => {
        const name = fileName(stream, second * 1000, pid, attempt) + (compressed ? '.gz' : '')
        expect(parseFileName(name)).toEqual({ stream, openedAt: second * 1000, pid, compressed })
      },
    )
    fc.assert(property)
  })

  it.each([
    'gpu_metrics.jsonl',
    'gpu_metrics_final.jsonl',
    'my_gpu_metrics_20250730_123456.jsonl',
    'gpu_metrics_20250730_123456.jsonl.bak',
    'gpu_metrics_20250730_123456.csv',
    'gpu_monitor.log',
    'gpuwarden.lock',
  ])('does not take %s for ours', (name) => {
    expect(parseFileName(name)).toBeNull()
  })
})
