/** A run that diverges, however it does, gives at most two alerts, and none of them is over while it is diverged. */
import { describe, expect, it } from 'vitest'
import { NOON, pretendWorld } from '../src/alerts/pretend-world.contract.ts'
import { runWith } from '../src/core/model.fixture.ts'
import type { Finding, TrainingStep } from '../src/core/model.ts'
import { NO_FIGURES } from '../src/core/record.ts'
import { createEngine } from '../src/detectors/engine.ts'
import { detectors } from '../src/detectors/index.ts'
import { random } from '../src/detectors/random.fixture.ts'

type Figures = Pick<TrainingStep, 'loss' | 'gradientNorm'>
interface Course {
  readonly stepsPerSecond: number
  /** Seconds after which it begins to diverge, and after which it ends. */
  readonly begins: number
  readonly ends: number
  /** `since`: seconds since it began to diverge; negative before. */
  readonly at: (since: number, noise: () => number) => Partial<Figures>
}

/** From one value to another within so many seconds, by orders of magnitude. */
const rise = (since: number, from: number, to: number, seconds: number) => from * (to / from) ** Math.min(1, Math.max(0, since / seconds))

const COURSES: Readonly<Record<string, Course>> = {
  'within 20 s, loss alone': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 420,
    at: (since, noise) => ({ loss: (since < 10 ? rise(since, 0.5, 7000, 10) : rise(since - 10, 7000, 5e7, 10)) * noise() }),
  },
  'within 20 s, with gradients': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 420,
    at: (since, noise) => ({ loss: rise(since, 0.5, 5e7, 20) * noise(), gradientNorm: rise(since, 0.8, 1e6, 20) * noise() }),
  },
  'at once': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 420,
    at: (since, noise) => ({ loss: (since < 0 ? 0.5 : 5000) * noise(), gradientNorm: (since < 0 ? 0.8 : 3000) * noise() }),
  },
  'within 10 min': {
    stepsPerSecond: 2,
    begins: 300,
    ends: 1500,
    at: (since, noise) => ({ loss: rise(since, 0.5, 500, 600) * noise(), gradientNorm: rise(since, 0.8, 300, 600) * noise() }),
  },
  'within an hour': {
    stepsPerSecond: 1,
    begins: 600,
    ends: 6000,
    at: (since, noise) => ({ loss: rise(since, 0.5, 50, 3600) * noise(), gradientNorm: rise(since, 0.8, 40, 3600) * noise() }),
  },
  'gradients first': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 600,
    at: (since, noise) => ({ loss: rise(since - 60, 0.5, 5e4, 60) * noise(), gradientNorm: rise(since, 0.8, 1e5, 30) * noise() }),
  },
  'NaN at the end': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 420,
    at: (since, noise) => ({
      loss: since > 60 ? Number.NaN : rise(since, 0.5, 5e7, 30) * noise(),
      gradientNorm: since > 60 ? Number.NaN : rise(since, 0.8, 1e6, 30) * noise(),
    }),
  },
  'known by its gradients alone': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 600,
    at: (since, noise) => ({ loss: null, gradientNorm: rise(since, 0.8, 1e6, 30) * noise() }),
  },
  'known by its gradients alone, slowly': {
    stepsPerSecond: 2,
    begins: 300,
    ends: 1500,
    at: (since, noise) => ({ loss: null, gradientNorm: rise(since, 0.8, 1e4, 600) * noise() }),
  },
  'in waves': {
    stepsPerSecond: 5,
    begins: 120,
    ends: 600,
    at: (since, noise) => ({
      loss: since < 0 ? 0.5 * noise() : 500 * (1.2 + Math.sin(since)) * noise(),
      gradientNorm: since < 0 ? 0.8 * noise() : 300 * (1.2 + Math.sin(since)) * noise(),
    }),
  },
}

interface Episode {
  readonly fingerprint: string
  firedAt: number
  resolvedAt: number | null
}

async function play({ stepsPerSecond, begins, ends, at }: Course, seed: number): Promise<{ episodes: Episode[]; messages: string[] }> {
  const draw = random(seed)
  const noise = () => 1 + 0.05 * draw.normal()
  const engine = createEngine({ kinds: detectors, hostname: 'box' })
  const world = pretendWorld()
  const run = runWith({ id: 'r', startedAt: NOON })
  const tell = (found: readonly Finding[]) => {
    for (const finding of found) world.alerts.accept({ type: 'finding', finding })
  }
  tell(engine.accept({ type: 'run', run }))
  const episodes: Episode[] = []
  let number = 0
  for (let second = 0; second < ends; second++) {
    const steps = Array.from({ length: stepsPerSecond }, (_, index): TrainingStep => {
      const since = second + index / stepsPerSecond
      const figures = { ...NO_FIGURES, learningRate: 1e-4, ...at(since - begins, noise) }
      return { kind: 'step', at: NOON + since * 1000, run: 'r', rank: 0, step: number++, phaseSeconds: null, custom: null, ...figures }
    })
    tell(engine.accept({ type: 'steps', steps, provenance: 'live' }))
    await world.pass(1000, 1000)
    for (const { fingerprint, state, firedAt, resolvedAt } of world.alerts.list()) {
      if (firedAt === null) continue
      const known = episodes.findLast((one) => one.fingerprint === fingerprint)
      if (!known || known.firedAt !== firedAt) episodes.push({ fingerprint, firedAt, resolvedAt: null })
      else if (state === 'resolved') known.resolvedAt = resolvedAt
      else known.resolvedAt = null
    }
  }
  return { episodes, messages: world.channel.said() }
}

/** A run that learns, then diverges at a pace and in an order of its own. */
function drawn(seed: number): Course {
  const draw = random(seed)
  const between = (from: number, to: number) => from * (to / from) ** draw.uniform()
  const stepsPerSecond = Math.ceil(between(1, 10))
  const [learns, lasts, lossTo, normTo] = [between(60, 600), between(5, 600), between(50, 1e8), between(50, 1e8)]
  const [lossLag, normLag] = [draw.uniform() * 60, draw.uniform() * 60]
  return {
    stepsPerSecond,
    begins: Math.ceil(learns),
    ends: Math.ceil(learns + lasts + 400),
    at: (since, noise) => {
      const learned = 0.3 + 2 * Math.exp((-3 * Math.min(learns, since + learns)) / learns)
      return {
        loss: rise(since - lossLag, learned, lossTo, lasts) * noise(),
        gradientNorm: rise(since - normLag, 0.8, normTo, lasts) * noise(),
      }
    },
  }
}

async function expectTwoAtMost(course: Course, seed: number): Promise<void> {
  const { episodes, messages } = await play(course, seed)
  const diverged = episodes.find(({ fingerprint }) => fingerprint === 'diverged|run=r')
  expect(diverged).toBeDefined()
  expect(episodes.length, messages.join('\n')).toBeLessThanOrEqual(2)
  expect(episodes.filter(({ resolvedAt }) => resolvedAt !== null && resolvedAt >= (diverged?.firedAt ?? 0))).toEqual([])
}

describe('a run that diverges gives at most two alerts, and none is over while it is diverged', () => {
  for (const [name, course] of Object.entries(COURSES))
    it(name, async () => {
      for (const seed of [1, 2, 3]) await expectTwoAtMost(course, seed)
    })

  it.each(Array.from({ length: 24 }, (_, index) => index + 1))('at a pace that is drawn: %i', async (seed) => {
    await expectTwoAtMost(drawn(seed), seed)
  })
})

it.each([1, 2, 3, 4])('a run whose gradient norm grows by orders of magnitude while it learns has not diverged: %i', async (seed) => {
  for (const learned of [0.3, 1, 1.8]) {
    const at = (since: number, noise: () => number) => ({
      loss: (learned + (2 - learned) * Math.exp(-since / 300)) * noise(),
      gradientNorm: rise(since, 0.1, 60, 900) * noise(),
    })
    const { episodes } = await play({ stepsPerSecond: 2, begins: 0, ends: 900, at }, seed)
    expect(episodes.filter(({ fingerprint }) => fingerprint.startsWith('diverged'))).toEqual([])
  }
})
