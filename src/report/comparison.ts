/** Two runs side by side: which is faster and why, phase by phase. */
import { numberOf } from '../core/json-text.ts'
import type { Reading } from '../core/model.ts'
import { placeOf } from '../core/step-phases.ts'
import { lossAt } from './loss-course.ts'
import type { Summary, SummaryTraining } from './training-summary.ts'

export type FigureKind = 'figure' | 'seconds' | 'bytes' | 'ratio' | 'dollars' | 'joules' | 'kilowatt hours' | 'duration'

export interface ComparedFigure {
  readonly name: string
  readonly kind: FigureKind
  readonly a: Reading
  readonly b: Reading
  /** Which is better; null: as good, or nobody can say. */
  readonly better: 'a' | 'b' | null
}

export interface ComparedPhase {
  readonly phase: string
  /** null: not measured. */
  readonly aSeconds: Reading
  readonly bSeconds: Reading
  /** What b takes longer. */
  readonly moreSeconds: number
}

export interface ComparedSide {
  readonly title: string
  readonly runId: string | null
  readonly outcome: string | null
  readonly from: number
  readonly to: number
}

export interface Comparison {
  readonly a: ComparedSide
  readonly b: ComparedSide
  /** How many times as fast b is; null: no pace that both have. */
  readonly speedRatio: Reading
  /** What the speed is measured by. */
  readonly speedBy: SpeedBy | null
  readonly figures: readonly ComparedFigure[]
  /** What the seconds of phases are of. */
  readonly per: Per
  readonly phases: readonly ComparedPhase[]
  /** Phases that make the difference, the largest first; empty: none was measured, or they are as fast. */
  readonly reasons: readonly ComparedPhase[]
  /** At the last step that both have come to. */
  readonly loss: { readonly step: number; readonly a: number; readonly b: number } | null
  /** Only those that differ. */
  readonly hyperparameters: readonly { readonly name: string; readonly a: unknown; readonly b: unknown }[]
  readonly notes: readonly string[]
}

export type SpeedBy = 'tokens' | 'samples' | 'steps'
export type Per = 'step' | '1,000 tokens' | '1,000 samples'

/** Closer than this is as fast. */
export const ALIKE_RATIO = 0.02
/** A phase that makes up this much of the difference is a reason. */
const REASON_RATIO = 0.2
const MOST_REASONS = 3

export function compareRuns(a: Summary, b: Summary): Comparison {
  const speed = speedOf(a.training, b.training)
  const per = perOf(a.training, b.training, speed?.by ?? null)
  const phases = phasesOf(a.training, b.training, per)
  return {
    a: sideOf(a),
    b: sideOf(b),
    speedRatio: speed?.ratio ?? null,
    speedBy: speed?.by ?? null,
    figures: figuresOf(a, b),
    per,
    phases,
    reasons: speed === null ? [] : reasonsOf(phases, speed.ratio),
    loss: lossOf(a.training, b.training),
    hyperparameters: differing(a.hyperparameters ?? {}, b.hyperparameters ?? {}),
    notes: [...notesOf(a, 'A'), ...notesOf(b, 'B')],
  }
}

const sideOf = ({ title, runId, outcome, from, to }: Summary): ComparedSide => ({ title, runId, outcome, from, to })

function notesOf({ notes, training }: Summary, side: string): readonly string[] {
  const none = training === null || training.phaseShares.length === 0 ? ['its steps have no phases, so nothing says why'] : []
  return [...notes, ...none].map((note) => `${side}: ${note}`)
}

/** Of one rank; a pace that counts the work is better than one that counts steps. */
function speedOf(a: SummaryTraining | null, b: SummaryTraining | null): { readonly by: SpeedBy; readonly ratio: number } | null {
  const paces: readonly (readonly [SpeedBy, (of: SummaryTraining) => Reading])[] = [
    ['tokens', ({ tokensPerSecond }) => tokensPerSecond],
    ['samples', ({ throughputPerSecond }) => throughputPerSecond],
    ['steps', ({ meanStepSeconds }) => (meanStepSeconds ? 1 / meanStepSeconds : null)],
  ]
  for (const [by, paceOf] of paces) {
    const [first, second] = [a && paceOf(a), b && paceOf(b)]
    if (first && second && Number.isFinite(first) && Number.isFinite(second)) return { by, ratio: second / first }
  }
  return null
}

/** Steps are compared where both do the same work in one. */
function perOf(a: SummaryTraining | null, b: SummaryTraining | null, by: SpeedBy | null): Per {
  const perStep = (of: SummaryTraining | null) =>
    ((by === 'tokens' ? of?.tokensPerSecond : of?.throughputPerSecond) ?? 0) * (of?.meanStepSeconds ?? 0)
  const [first, second] = [perStep(a), perStep(b)]
  if (by === null || by === 'steps' || !(first > 0 && second > 0) || Math.abs(second / first - 1) <= ALIKE_RATIO) return 'step'
  return by === 'tokens' ? '1,000 tokens' : '1,000 samples'
}

function phasesOf(a: SummaryTraining | null, b: SummaryTraining | null, per: Per): readonly ComparedPhase[] {
  const [first, second] = [secondsByPhase(a, per), secondsByPhase(b, per)]
  return [...new Set([...first.keys(), ...second.keys()])]
    .sort((one, other) => placeOf(one) - placeOf(other))
    .map((phase) => {
      const [aSeconds, bSeconds] = [first.get(phase) ?? null, second.get(phase) ?? null]
      return { phase, aSeconds, bSeconds, moreSeconds: (bSeconds ?? 0) - (aSeconds ?? 0) }
    })
}

function secondsByPhase(training: SummaryTraining | null, per: Per): Map<string, number> {
  const { phaseShares = [], meanStepSeconds = null, tokensPerSecond = null, throughputPerSecond = null } = training ?? {}
  const pace = per === '1,000 tokens' ? tokensPerSecond : throughputPerSecond
  const whole = per === 'step' ? meanStepSeconds : pace ? 1000 / pace : null
  return new Map(whole === null ? [] : phaseShares.map(({ phase, ratio }) => [phase, ratio * whole]))
}

function reasonsOf(phases: readonly ComparedPhase[], ratio: number): readonly ComparedPhase[] {
  if (Math.abs(ratio - 1) < ALIKE_RATIO) return []
  const known = phases.filter(({ aSeconds, bSeconds }) => aSeconds !== null || bSeconds !== null)
  // Where b is faster, what it takes less of is the reason.
  const gain = (phase: ComparedPhase) => (ratio > 1 ? -phase.moreSeconds : phase.moreSeconds)
  const total = known.reduce((sum, phase) => sum + Math.max(0, gain(phase)), 0)
  return known
    .filter((phase) => total > 0 && gain(phase) >= REASON_RATIO * total)
    .sort((one, other) => gain(other) - gain(one))
    .slice(0, MOST_REASONS)
}

type Row = readonly [name: string, kind: FigureKind, good: 'more' | 'less' | null, of: (summary: Summary) => Reading | undefined]

const ROWS: readonly Row[] = [
  ['steps', 'figure', null, ({ training }) => training?.steps],
  ['duration', 'duration', null, ({ from, to }) => to - from],
  ['step time', 'seconds', 'less', ({ training }) => training?.meanStepSeconds],
  ['samples/s', 'figure', 'more', ({ training }) => training?.throughputPerSecond],
  ['tokens/s', 'figure', 'more', ({ training }) => training?.tokensPerSecond],
  ['MFU', 'ratio', 'more', ({ figures }) => figures.mfuRatio],
  ['goodput', 'ratio', 'more', ({ training }) => training?.time?.goodputRatio],
  ['last loss', 'figure', null, ({ training }) => training?.loss],
  ['best loss', 'figure', 'less', ({ training }) => training?.bestLoss],
  ['peak tensor memory', 'bytes', 'less', ({ training }) => training?.memoryPeakBytes],
  [
    'peak GPU memory',
    'bytes',
    'less',
    ({ gpus }) => most(gpus.map(({ peakProcessBytes, use }) => peakProcessBytes ?? use.peakMemoryUsedBytes)),
  ],
  ['GPU utilization', 'ratio', 'more', ({ gpus }) => mean(gpus.map(({ use }) => use.meanUtilizationRatio))],
  ['energy', 'kilowatt hours', null, ({ energyKilowattHours }) => energyKilowattHours],
  ['energy per 1,000 tokens', 'joules', 'less', ({ figures }) => perOfKind(figures.joulesPer1000, 'tokens')],
  ['energy per 1,000 samples', 'joules', 'less', ({ figures }) => perOfKind(figures.joulesPer1000, 'samples')],
  ['cost', 'dollars', null, ({ cost }) => cost?.amount],
  ['cost per 1,000 tokens', 'dollars', 'less', ({ figures }) => perOfKind(figures.dollarsPer1000, 'tokens')],
  ['cost per 1,000 samples', 'dollars', 'less', ({ figures }) => perOfKind(figures.dollarsPer1000, 'samples')],
]

/** Those that at least one of them has. */
function figuresOf(a: Summary, b: Summary): readonly ComparedFigure[] {
  return ROWS.flatMap(([name, kind, good, of]): ComparedFigure[] => {
    // From a file, what is not finite comes as text.
    const [first, second] = [numberOf(of(a)), numberOf(of(b))]
    return first === null && second === null ? [] : [{ name, kind, a: first, b: second, better: betterOf(first, second, good) }]
  })
}

function betterOf(a: Reading, b: Reading, good: 'more' | 'less' | null): 'a' | 'b' | null {
  if (good === null || a === null || b === null || !(Math.abs(b - a) > ALIKE_RATIO * Math.max(Math.abs(a), Math.abs(b)))) return null
  return b > a === (good === 'more') ? 'b' : 'a'
}

function perOfKind(per: { readonly of: string; readonly value: number } | null, kind: string): Reading {
  return per?.of === kind ? per.value : null
}

function known(values: readonly Reading[]): number[] {
  return values.filter((value) => value !== null)
}

function most(values: readonly Reading[]): Reading {
  const all = known(values)
  return all.length === 0 ? null : Math.max(...all)
}

function mean(values: readonly Reading[]): Reading {
  const all = known(values)
  return all.length === 0 ? null : all.reduce((sum, value) => sum + value, 0) / all.length
}

function lossOf(a: SummaryTraining | null, b: SummaryTraining | null): Comparison['loss'] {
  if (!a || !b || a.losses.length === 0 || b.losses.length === 0) return null
  const step = Math.min(a.losses.at(-1)?.[0] ?? 0, b.losses.at(-1)?.[0] ?? 0)
  const [first, second] = [lossAt(a.losses, step), lossAt(b.losses, step)]
  return first === null || second === null ? null : { step, a: first, b: second }
}

type Parameters = Readonly<Record<string, unknown>>

function differing(a: Parameters, b: Parameters): Comparison['hyperparameters'] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .filter((name) => JSON.stringify(a[name]) !== JSON.stringify(b[name]))
    .map((name) => ({ name, a: a[name] ?? null, b: b[name] ?? null }))
}
