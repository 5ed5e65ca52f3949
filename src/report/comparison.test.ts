import { describe, expect, it } from 'vitest'
import { compareRuns } from './comparison.ts'
import { comparisonHtml, comparisonText, verdictText } from './comparison-text.ts'
import { LossCourse, lossAt } from './loss-course.ts'
import { GpuUse } from './training-gpu-use.ts'
import { type Summary, type SummaryTraining, summarize } from './training-summary.ts'

const MODEL = { parameters: 1e9, activeParameters: 9e8, flopsPerToken: 6e9, flopsPerSample: null, computeType: 'bfloat16' }

const TRAINING: SummaryTraining = {
  steps: 100,
  lastStep: 100,
  loss: 2,
  bestLoss: 1.9,
  stepsPerSecond: 2,
  throughputPerSecond: 16,
  meanStepSeconds: 0.5,
  tokensPerSecond: 16_000,
  samples: 800,
  tokens: 800_000,
  memoryPeakBytes: 2 ** 30,
  phaseShares: [
    { phase: 'data', ratio: 0.4 },
    { phase: 'forward', ratio: 0.2 },
    { phase: 'backward', ratio: 0.4 },
  ],
  model: MODEL,
  time: null,
  ranks: [],
  losses: [
    [50, 3],
    [100, 2],
  ],
}

function summary(id: string, more: Partial<SummaryTraining> | null = {}): Summary {
  const use = new GpuUse()
  for (const at of [0, 50_000]) use.accept(at, { ...NO_USE, powerWatts: 500 })
  const gpu = { id: 'GPU-1', label: '0', name: 'NVIDIA H200', memoryTotalBytes: 2 ** 37, use: use.summary(), peakProcessBytes: null }
  return summarize(
    {
      title: `${id}.py`,
      runId: id,
      outcome: 'success',
      message: null,
      outOfMemory: null,
      leaks: [],
      hyperparameters: { lr: 0.1, workers: id === 'fast' ? 8 : 0 },
      layers: null,
      hang: null,
      stacks: [],
      runs: [],
      isOfAllGpus: false,
      from: 0,
      to: 50_000,
      gpus: [gpu],
      training: more === null ? null : { ...TRAINING, ...more },
      findings: [],
      notes: [],
    },
    3.6,
  )
}

const NO_USE = { utilizationRatio: null, tensorActiveRatio: null, memoryUsedBytes: null, temperatureCelsius: null, energyJoules: null }

const FASTER: Partial<SummaryTraining> = {
  meanStepSeconds: 0.32,
  throughputPerSecond: 25,
  tokensPerSecond: 25_000,
  phaseShares: [
    { phase: 'data', ratio: 0.0625 },
    { phase: 'forward', ratio: 0.3125 },
    { phase: 'backward', ratio: 0.625 },
  ],
}

describe('a comparison', () => {
  const comparison = compareRuns(summary('slow'), summary('fast', FASTER))

  it('says which is faster, and why', () => {
    expect(verdictText(comparison)).toBe(
      'B is 1.56 times as fast as A (by tokens a second). Per step it takes 180 ms less for waiting for data.',
    )
    const turned = compareRuns(summary('fast', FASTER), summary('slow'))
    expect(verdictText(turned)).toBe(
      'A is 1.56 times as fast as B (by tokens a second). Per step it takes 180 ms less for waiting for data.',
    )
  })

  it('has figures, phases, loss at the same step, and hyperparameters that differ', () => {
    expect(comparison.figures.find(({ name }) => name === 'MFU')).toMatchObject({ a: (6e9 * 16_000) / 989.5e12, better: 'b' })
    expect(comparison.figures.find(({ name }) => name === 'energy per 1,000 tokens')?.a).toBeCloseTo((500 * 50) / 800)
    expect(comparison.figures.find(({ name }) => name === 'cost per 1,000 tokens')?.a).toBeCloseTo(0.05 / 800)
    expect(comparison.phases.map(({ phase }) => phase)).toEqual(['data', 'forward', 'backward'])
    expect(comparison.loss).toEqual({ step: 100, a: 2, b: 2 })
    expect(comparison.hyperparameters).toEqual([{ name: 'workers', a: 0, b: 8 }])
  })

  it('compares the same work where batches differ', () => {
    const large = compareRuns(summary('a'), summary('b', { meanStepSeconds: 1, throughputPerSecond: 16, tokensPerSecond: 16_000 }))
    expect(large.per).toBe('1,000 tokens')
    expect(verdictText(large)).toContain('Both are as fast')
  })

  it('says what it does not know', () => {
    const unknown = { meanStepSeconds: null, throughputPerSecond: null, tokensPerSecond: null }
    expect(verdictText(compareRuns(summary('a', unknown), summary('b')))).toContain('no pace in common')
    const blind = compareRuns(summary('a', { phaseShares: [] }), summary('b', { ...FASTER, phaseShares: [] }))
    expect(verdictText(blind)).toContain('nothing says why')
  })

  it('is text and a page, with names that are not taken for markup', () => {
    const odd = compareRuns(summary('<b>'), summary('fast', FASTER))
    const text = comparisonText(odd)
    for (const word of ['A  <b>.py (<b>): succeeded', 'tokens/s', 'data', 'at step 100', 'workers']) expect(text).toContain(word)
    expect(text).not.toMatch(/[ \t]$/m)
    const page = comparisonHtml(odd, '1', 0)
    expect(page).toContain('&lt;b&gt;.py')
    expect(page).not.toContain('<b>.py')
  })
})

describe('LossCourse', () => {
  it('is bounded, and knows the loss near a step', () => {
    const course = new LossCourse()
    for (let step = 0; step < 100_000; step++) course.add(step, 100_000 - step)
    expect(course.points().length).toBeLessThanOrEqual(512)
    expect(lossAt(course.points(), 50_000)).toBeCloseTo(50_000, -3)
    course.add(5, Number.NaN)
    expect(lossAt([[10, 1]], 500)).toBeNull()
    expect(lossAt([], 5)).toBeNull()
  })
})
