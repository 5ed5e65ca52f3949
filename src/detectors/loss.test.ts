import { describe, expect, it } from 'vitest'
import type { DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import type { Finding, TrainingStep } from '../core/model.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { diverged } from './diverged.ts'
import { gradExplosion } from './grad-explosion.ts'
import { alarms, GIB, gpu, run as runInput, START, step } from './inputs.fixture.ts'
import { lossNan } from './loss-nan.ts'
import { lossPlateau } from './loss-plateau.ts'
import { lossSpike } from './loss-spike.ts'
import { type Random, random } from './random.fixture.ts'

type Values = (index: number) => Partial<TrainingStep>
const steps = (count: number, values: Values, from = 0): DetectorInput[] =>
  Array.from({ length: count }, (_, index) => step(START + (from + index) * 1000, from + index, values(from + index)))
const losses = (count: number, loss: (index: number) => number, from = 0) => steps(count, (index) => ({ loss: loss(index) }), from)
const feedTo = <O>(kind: DetectorKind<O>, inputs: readonly DetectorInput[]): Finding[] => feed(kind.create(kind.defaults), inputs)
const wave = (index: number) => 2 + 0.05 * Math.sin(index * 1.7) + 0.03 * Math.sin(index * 0.9)

const NOTHING_LOGGED = { loss: null, gradientNorm: null }

detectorContract({ kind: lossNan, trouble: () => losses(100, (index) => (index >= 40 && index < 60 ? Number.NaN : 2)) })
detectorContract({ kind: lossSpike, trouble: () => losses(400, (index) => wave(index) + (index >= 200 && index < 206 ? 3 : 0)) })
detectorContract({
  kind: gradExplosion,
  trouble: () => steps(300, (index) => ({ gradientNorm: index >= 150 && index < 155 ? 50 : wave(index) / 4 })),
})
detectorContract({
  kind: diverged,
  trouble: () => losses(400, (index) => (index >= 200 && index < 260 ? 5000 : wave(index))),
})
detectorContract({
  kind: lossPlateau,
  trouble: () =>
    losses(9000, (index) => (index < 3000 ? 5 - index / 1000 : index < 6000 ? 2 : 2 - (index - 6000) / 2000) + 0.01 * Math.sin(index)),
})

describe('loss_nan', () => {
  const layer = { layer: 'decoder.17.mlp.up', part: 'activations' } as const

  it('names the layer that was the first', () => {
    const [found] = feedTo(lossNan, [
      ...losses(151, wave),
      ...steps(5, (index) => ({ loss: Number.NaN, ...(index === 151 ? { nonFinite: layer } : {}) }), 151),
    ])
    expect(found?.message).toContain('First NaN in decoder.17.mlp.up (activations), step 151.')
    expect(found?.evidence).toMatchObject({ layer: 'decoder.17.mlp.up', layer_part: 'activations', layer_step: 151 })
    expect(found?.advice.join(' ')).toContain('Look at decoder.17.mlp.up first')
  })

  it('names it at once where it is found some steps later, in the same finding', () => {
    const found = feedTo(
      lossNan,
      steps(60, (index) => ({ loss: index < 50 ? 2 : Number.NaN, ...(index === 53 ? { nonFinite: layer } : {}) })),
    )
    expect(found.map(({ state }) => state)).toEqual(['active', 'active'])
    expect(found[1]).toMatchObject({ fingerprint: found[0]?.fingerprint, since: found[0]?.since })
    expect(found[1]?.message).toContain('First NaN in decoder.17.mlp.up')
  })

  it('does not blame a layer whose gradient overflowed long before', () => {
    const [found] = feedTo(
      lossNan,
      steps(60, (index) => ({ loss: index < 50 ? 2 : Number.NaN, ...(index === 3 ? { nonFinite: layer } : {}) })),
    )
    expect(found?.message).not.toContain('decoder')
  })
})

describe('diverged', () => {
  /** Gradients are calm until the step `calm`. */
  const beginning = (loss: (index: number) => number, count: number, calm: number) =>
    feedTo(
      diverged,
      steps(count, (index) => ({ loss: loss(index), gradientNorm: index < calm ? 1 : 1 + loss(index) })),
    )[0]?.evidence

  it('began where the loss left its level, also if the rise took a hundred steps', () => {
    const falling = (index: number) => 2 * Math.exp(-index / 400) + 0.3 + 0.02 * Math.sin(index)
    const found = beginning((index) => (index < 500 ? falling(index) : 0.5 * Math.exp((index - 500) / 24)), 900, 500)
    expect(found?.began_at_step).toBeGreaterThan(500)
    expect(found?.began_at_step).toBeLessThan(540)
    expect(found?.loss_before).toBeLessThan(1)
    expect(found?.gradient_norm_before).toBeCloseTo(1, 1)
  })

  it('began at its own step where the data had become harder long before', () => {
    const found = beginning((index) => (index < 300 ? 1 : index < 1500 ? 4 : 5000) + 0.02 * Math.sin(index), 1600, 1500)
    expect(found?.began_at_step).toBe(1500)
    expect(found?.loss_before).toBeCloseTo(4, 1)
  })
})

describe('loss_nan', () => {
  it('is critical at the very step, of whatever rank', () => {
    const found = feedTo(lossNan, [...losses(10, () => 2), step(START + 10_000, 10, { loss: Number.NaN, rank: 5 })])
    expect(found).toMatchObject([
      { severity: 'critical', at: START + 10_000, evidence: { step: 10, rank: 5, loss: 'NaN', last_finite_loss: 2, last_finite_step: 9 } },
    ])
  })

  it('sees infinity as well', () => {
    expect(feedTo(lossNan, [step(START, 0, { loss: Number.POSITIVE_INFINITY })])[0]?.message).toContain('Infinity')
  })

  it('takes one overflowing gradient for a loss scaler at work, three for what they are', () => {
    const overflow = (count: number) => steps(count, () => ({ gradientNorm: Number.POSITIVE_INFINITY }))
    expect(feedTo(lossNan, overflow(1)).map((finding) => finding.severity)).toEqual(['warning'])
    expect(feedTo(lossNan, overflow(3)).map((finding) => finding.severity)).toEqual(['warning', 'critical'])
  })

  it('sees it in the gradients when the trainer hides it in the loss', () => {
    const hidden = steps(5, () => ({ loss: 2, gradientNorm: Number.NaN }))
    expect(feedTo(lossNan, hidden).at(-1)?.severity).toBe('critical')
  })

  it('names the steps in which it may have begun where the loss is logged every tenth step', () => {
    const logged = (loss: (index: number) => number, more: object = {}) =>
      Array.from({ length: 150 }, (_, index) =>
        step(
          START + index * 1000,
          index + 1,
          (index + 1) % 10 === 0 ? { loss: loss(index + 1), gradientNorm: null, ...more } : NOTHING_LOGGED,
        ),
      )
    const found = feedTo(
      lossNan,
      logged((number) => (number <= 10 ? 2 : Number.NaN)),
    )
    expect(found.map((finding) => finding.message.replace(/^Run run-1: /, ''))).toEqual([
      'the loss is NaN at step 20; it began between step 11 and 20; the last finite loss was 2 at step 10.',
      'the loss is NaN since step 20; it began between step 11 and 20; the last finite loss was 2 at step 10.',
      'the loss is NaN since step 20; it began between step 11 and 20; the last finite loss was 2 at step 10.',
    ])
    expect(found[0]?.evidence).toMatchObject({ step: 20, earliest_step: 11 })
    expect(
      feedTo(
        lossNan,
        logged(() => Number.NaN),
      )[0]?.message,
    ).toContain('at step 10; it began between step 1 and 10.')
    const filtered = feedTo(
      lossNan,
      logged(() => 0, { gradientNorm: Number.NaN }),
    )
    expect(filtered[0]).toMatchObject({
      severity: 'critical',
      message: expect.stringContaining('the loss is NaN (logged as 0) at step 10'),
    })
  })

  it('ends after twenty good steps, and with the run', () => {
    const bad = losses(1, () => Number.NaN)
    expect(feedTo(lossNan, [...bad, ...losses(19, () => 2, 1)]).map((finding) => finding.state)).toEqual(['active'])
    expect(feedTo(lossNan, [...bad, ...losses(20, () => 2, 1)]).map((finding) => finding.state)).toEqual(['active', 'resolved'])
    expect(feedTo(lossNan, [...bad, runInput({ endedAt: START + 5000 })]).map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('is found in steps that arrive after the end of their run, once, and is over at once', () => {
    const end = runInput({ endedAt: START + 60_000, outcome: 'failed' })
    const late = losses(40, (index) => (index < 20 ? 2 : Number.NaN))
    const found = feedTo(lossNan, [end, ...late, end, gpu(START + 4_000_000)])
    expect(found.map(({ state, severity, at }) => [state, severity, at])).toEqual([
      ['active', 'critical', START + 20_000],
      ['resolved', 'critical', START + 20_000],
    ])
    expect(found[0]?.message).toContain('NaN at step 20; the last finite loss was 2 at step 19')
  })

  it('does not repeat in late steps what was open when the run ended, unless they show something worse', () => {
    const end = runInput({ endedAt: START + 60_000, outcome: 'failed' })
    const bad = losses(1, () => Number.NaN)
    expect(feedTo(lossNan, [...bad, end, ...losses(20, () => Number.NaN, 1)]).map(({ state }) => state)).toEqual(['active', 'resolved'])
    const overflow = steps(1, () => ({ gradientNorm: Number.POSITIVE_INFINITY }))
    expect(feedTo(lossNan, [...overflow, end, ...losses(3, () => Number.NaN, 1)]).map(({ severity, state }) => [severity, state])).toEqual([
      ['warning', 'active'],
      ['warning', 'resolved'],
      ['critical', 'active'],
      ['critical', 'resolved'],
    ])
  })

  it('judges a run that goes on after its end as one that lives', () => {
    const end = runInput({ endedAt: START + 60_000, outcome: 'failed' })
    const late = losses(2, () => Number.NaN)
    const found = feedTo(lossNan, [end, ...late, runInput({}), ...losses(2, () => Number.NaN, 2)])
    expect(found.map(({ state }) => state)).toEqual(['active', 'resolved', 'active'])
  })

  it('forgets a run of which nothing has been heard for an hour', () => {
    const found = feedTo(lossNan, [...losses(1, () => Number.NaN), gpu(START + 1000), gpu(START + 4_000_000)])
    expect(found.at(-1)?.state).toBe('resolved')
  })
})

/** Clean curves as training makes them: decay, schedules, heavy tails, hard batches. */
const CURVES: Readonly<Record<string, (index: number, chance: Random) => number>> = {
  'smooth decay': (index, chance) => 2 + 8 * Math.exp(-index / 3000) + 0.03 * chance.normal(),
  'power law, heavy tails': (index, chance) => 1.8 + 8 * (1 + index / 50) ** -0.5 + 0.05 * chance.student(5),
  'noise in proportion': (index, chance) => (0.1 + 9 * Math.exp(-index / 2000)) * Math.exp(0.15 * chance.normal()),
  'hard batches': (index, chance) =>
    0.2 + 6 * Math.exp(-index / 800) + 0.03 * chance.normal() + (chance.uniform() < 0.05 ? 1 + chance.uniform() : 0),
  'warm restarts of the schedule': (index, chance) => 2.5 + 0.15 * Math.cos((2 * Math.PI * index) / 5000) + 0.04 * chance.normal(),
  'epochs that drop': (index, chance) => 3 - 0.3 * Math.floor(index / 4000) + 0.05 * chance.student(6),
  'restarts of the schedule that raise the loss': (index, chance) =>
    2.4 + 0.12 * (1 - (index % 2500) / 2500) * Math.min(1, (index % 2500) / 50) + 0.04 * chance.normal(),
  'steps with a constant loss': () => 0.25,
  'loss near zero': (_, chance) => 1e-4 * Math.exp(0.3 * chance.normal()),
}
const CLEAN_STEPS = 25_000

describe('loss_spike', () => {
  for (const [name, curve] of Object.entries(CURVES))
    it(`is silent on a clean curve of ${CLEAN_STEPS} steps: ${name}`, () => {
      const chance = random(11)
      expect(
        alarms(
          feedTo(
            lossSpike,
            losses(CLEAN_STEPS, (index) => curve(index, chance)),
          ),
        ),
      ).toEqual([])
    })

  it(`is silent on ${CLEAN_STEPS} steps of a curve that wanders`, () => {
    const chance = random(12)
    let drift = 0
    const wandering = losses(CLEAN_STEPS, () => {
      drift = 0.9 * drift + 0.02 * chance.normal()
      return 2.4 + drift + 0.02 * chance.normal()
    })
    expect(alarms(feedTo(lossSpike, wandering))).toEqual([])
  })

  it('is silent on hard batches that come together by chance, also after a quiet time', () => {
    const found = [1, 2, 3, 4].flatMap((seed) => {
      const chance = random(seed)
      const curve = (index: number) => 2.4 + 3 / (1 + index / 80) + 0.03 * chance.normal()
      return feedTo(
        lossSpike,
        losses(CLEAN_STEPS, (index) => curve(index) + (chance.uniform() < 0.04 ? 0.5 + 1.5 * chance.uniform() : 0)),
      )
    })
    expect(alarms(found)).toEqual([])
  })

  it('finds half a nat more within six steps', () => {
    const late: number[] = []
    for (let seed = 1; seed <= 100; seed++) {
      const chance = random(seed)
      const noise = 0.02 + 0.08 * chance.uniform()
      const found = feedTo(
        lossSpike,
        losses(520, (index) => 2.5 + noise * chance.normal() + (index >= 500 ? 0.5 : 0)),
      )
      late.push(Number(found[0]?.evidence.step ?? Number.NaN) - 499)
    }
    expect(late.filter((count) => count >= 1 && count <= 6).length).toBeGreaterThanOrEqual(95)
    expect(Math.min(...late)).toBeGreaterThanOrEqual(1)
  })

  it('finds a slow divergence', () => {
    for (let seed = 1; seed <= 30; seed++) {
      const chance = random(seed)
      const found = feedTo(
        lossSpike,
        losses(560, (index) => 2.5 + 0.05 * chance.normal() + Math.max(0, index - 500) * 0.02),
      )
      expect(Number(found[0]?.evidence.step)).toBeLessThanOrEqual(530)
      expect(Number(found[0]?.evidence.step)).toBeGreaterThan(500)
    }
  })

  it('bears with one bad batch', () => {
    expect(
      feedTo(
        lossSpike,
        losses(600, (index) => wave(index) + (index === 400 ? 20 : 0)),
      ),
    ).toEqual([])
  })

  it('bears with hard batches that come more often than before', () => {
    const hard = (index: number) => (index < 400 ? (index % 50 === 0 ? 1.2 : 0) : index < 440 && index % 2 === 0 ? 1.5 : 0)
    expect(
      feedTo(
        lossSpike,
        losses(600, (index) => wave(index) + hard(index)),
      ),
    ).toEqual([])
  })

  it('starts anew when a run goes back to a checkpoint', () => {
    const first = losses(500, (index) => 5 * Math.exp(-index / 200) + 0.01 * wave(index))
    const second = Array.from({ length: 500 }, (_, index) =>
      step(START + (500 + index) * 1000, 100 + index, { loss: 5 * Math.exp(-(100 + index) / 200) + 0.01 * wave(index) }),
    )
    expect(feedTo(lossSpike, [...first, ...second])).toEqual([])
  })

  it('follows one rank, not the mixture of all', () => {
    const inputs = Array.from({ length: 4000 }, (_, index) =>
      step(START + index * 100, index >> 2, { rank: index % 4, loss: wave(index) + (index % 4) * 2 }),
    )
    expect(feedTo(lossSpike, inputs)).toEqual([])
  })
})

describe('grad_explosion', () => {
  const norms = (count: number, norm: (index: number) => number) =>
    steps(count, (index) => ({ gradientNorm: norm(index), memoryAllocatedBytes: GIB }))

  it('knows the level at which people call it an explosion', () => {
    expect(
      feedTo(
        gradExplosion,
        norms(102, (index) => (index >= 100 ? 12 : 1)),
      )[0],
    ).toMatchObject({ severity: 'warning', evidence: { level: 10 } })
    expect(
      feedTo(
        gradExplosion,
        norms(101, (index) => (index >= 100 ? 345 : 1)),
      ).length,
    ).toBe(1)
  })

  it('bears with one step of clipping', () => {
    expect(
      feedTo(
        gradExplosion,
        norms(300, (index) => (index % 100 === 99 ? 12 : 1)),
      ),
    ).toEqual([])
  })

  it('does not call a run exploding whose norm lives above the level', () => {
    const chance = random(3)
    expect(
      feedTo(
        gradExplosion,
        norms(3000, () => 40 * Math.exp(0.2 * chance.normal())),
      ),
    ).toEqual([])
  })

  it('is silent on 50,000 steps of a log-normal norm that decays', () => {
    const chance = random(5)
    expect(
      feedTo(
        gradExplosion,
        norms(50_000, (index) => (0.3 + 3 * Math.exp(-index / 500)) * Math.exp(0.35 * chance.student(6))),
      ),
    ).toEqual([])
  })

  it('finds a lasting rise that stays below the level', () => {
    const chance = random(9)
    const found = feedTo(
      gradExplosion,
      norms(420, (index) => 0.4 * Math.exp(0.1 * chance.normal()) * (index >= 400 ? 12 : 1)),
    )
    expect(Number(found[0]?.evidence.step)).toBeLessThanOrEqual(405)
  })
})

describe('loss_plateau', () => {
  it('is information, and only for a loss that does not fall', () => {
    const chance = random(2)
    const flat = feedTo(
      lossPlateau,
      losses(3000, () => 2 + 0.1 * chance.normal()),
    )
    expect(flat[0]?.severity).toBe('info')
    const falling = feedTo(
      lossPlateau,
      losses(10_000, (index) => 6 * (1 + index / 100) ** -0.3 + 0.02 * chance.normal()),
    )
    expect(falling).toEqual([])
  })
})
