import { describe, expect, it } from 'vitest'
import { COMPUTE_TYPES, peakFlops } from './card-peaks.ts'
import { flopsPerSecond, mfuOf, per1000 } from './model-work.ts'

const model = { parameters: 8e9, activeParameters: 7.5e9, flopsPerToken: 5e10, flopsPerSample: null, computeType: 'bfloat16' }

describe('peakFlops', () => {
  it('is dense, by the name of the card and the data type', () => {
    expect(peakFlops('NVIDIA H100 80GB HBM3', 'bfloat16')).toBe(989.5e12)
    expect(peakFlops('NVIDIA H100 PCIe', 'bfloat16')).toBe(756e12)
    expect(peakFlops('NVIDIA H200', 'float8')).toBe(1979e12)
    expect(peakFlops('NVIDIA H200 NVL', 'bfloat16')).toBe(835.5e12)
    expect(peakFlops('NVIDIA A100-SXM4-80GB', 'tf32')).toBe(156e12)
    expect(peakFlops('NVIDIA GB200', 'bfloat16')).toBe(2500e12)
    expect(peakFlops('NVIDIA L40S', 'bfloat16')).toBe(362e12)
    expect(peakFlops('AMD Instinct MI300X', 'bfloat16')).toBe(1307.4e12)
    expect(peakFlops('Tesla V100-SXM2-32GB', 'float16')).toBe(125e12)
  })

  it('is unknown for other cards, other types, and types a card does not have', () => {
    expect(peakFlops('GeForce 8800', 'bfloat16')).toBeNull()
    expect(peakFlops('Tesla V100-SXM2-32GB', 'bfloat16')).toBeNull()
    expect(peakFlops('NVIDIA H200', 'float64')).toBeNull()
    expect(peakFlops(null, 'bfloat16')).toBeNull()
    expect(peakFlops('NVIDIA H200', null)).toBeNull()
    expect(peakFlops('NVIDIA GeForce RTX 4090 Laptop GPU', 'bfloat16')).toBeNull()
    expect(peakFlops('NVIDIA H100 MIG 1g.10gb', 'bfloat16')).toBeNull()
    expect(peakFlops('NVIDIA A1000', COMPUTE_TYPES[1])).toBeNull()
  })
})

describe('mfuOf', () => {
  it('is what the model needs ÷ what the card can', () => {
    const pace = { samplesPerSecond: 8, tokensPerSecond: 10_000 }
    expect(flopsPerSecond(model, pace)).toBe(5e14)
    expect(mfuOf(model, pace, 1e15)).toBe(0.5)
    expect(mfuOf({ ...model, flopsPerToken: null, flopsPerSample: 1e14 }, pace, 1e15)).toBe(0.8)
  })

  it('is unknown where one of them is', () => {
    const pace = { samplesPerSecond: 8, tokensPerSecond: null }
    for (const [of, at, peak] of [
      [model, pace, 1e15],
      [null, pace, 1e15],
      [model, { samplesPerSecond: null, tokensPerSecond: 10 }, null],
      [model, { samplesPerSecond: null, tokensPerSecond: Number.NaN }, 1e15],
    ] as const)
      expect(mfuOf(of, at, peak)).toBeNull()
  })
})

describe('per1000', () => {
  it('is of tokens where they are counted, else of samples', () => {
    expect(per1000(5, { tokens: 2000, samples: 10 })).toEqual({ of: 'tokens', value: 2.5 })
    expect(per1000(5, { tokens: null, samples: 10 })).toEqual({ of: 'samples', value: 500 })
    expect(per1000(null, { tokens: 2000, samples: 10 })).toBeNull()
    expect(per1000(5, { tokens: null, samples: null })).toBeNull()
    expect(per1000(5, { tokens: 0, samples: null })).toBeNull()
  })
})
