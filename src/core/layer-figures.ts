/** The figures of a model's layers that an SDK sends, and the layers that stand out by them. */
import type { NonFiniteLayer, Reading } from './model.ts'

export interface LayerFigure {
  readonly label: string
  /** On screens a share is a percentage. */
  readonly unit: 'number' | 'ratio'
  /** Colored by its order of magnitude. */
  readonly isLogarithmic: boolean
}

export const LAYER_FIGURES = {
  gradient_norm: { label: 'Gradient norm', unit: 'number', isLogarithmic: true },
  weight_norm: { label: 'Weight norm', unit: 'number', isLogarithmic: true },
  update_ratio: { label: 'Update ÷ weights', unit: 'number', isLogarithmic: true },
  zero_share: { label: 'Gradients that are 0', unit: 'ratio', isLogarithmic: false },
  non_finite_share: { label: 'Values that are not finite', unit: 'ratio', isLogarithmic: false },
  activation_mean: { label: 'Activation, mean', unit: 'number', isLogarithmic: false },
  activation_deviation: { label: 'Activation, deviation', unit: 'number', isLogarithmic: true },
  dead_share: { label: 'Activations that are 0', unit: 'ratio', isLogarithmic: false },
  attention_entropy: { label: 'Attention, entropy', unit: 'number', isLogarithmic: false },
  attention_largest: { label: 'Attention, largest weight', unit: 'ratio', isLogarithmic: false },
} as const satisfies Readonly<Record<string, LayerFigure>>

export type LayerFigureName = keyof typeof LAYER_FIGURES
export const LAYER_FIGURE_NAMES = Object.keys(LAYER_FIGURES) as readonly LayerFigureName[]

/** How often the layers were looked at; values by figure are layer × look. A value that is not finite is NaN, an unknown one null. */
export interface LayerCourse {
  readonly layers: readonly string[]
  readonly steps: readonly number[]
  readonly values: Readonly<Partial<Record<LayerFigureName, readonly (readonly Reading[])[]>>>
  /** The layer that the SDK found to break first. */
  readonly brokeFirst?: BrokenLayer | null
}

export interface BrokenLayer extends NonFiniteLayer {
  readonly step: number
}

export interface Standout {
  readonly layer: string
  readonly figure: LayerFigureName
  readonly step: number
  readonly value: Reading
  /** In words, after the name of the layer. */
  readonly reason: string
}

/** What a report says of the layers. */
export interface LayerSummary {
  readonly layers: number
  readonly looks: number
  readonly lastStep: number
  readonly standouts: readonly Standout[]
}

/** null: they were never looked at. */
export function layerSummary(course: LayerCourse | null): LayerSummary | null {
  const lastStep = course?.steps.at(-1)
  if (!course || lastStep === undefined) return null
  return { layers: course.layers.length, looks: course.steps.length, lastStep, standouts: standouts(course) }
}

/** `decoder.17.mlp.up has values that are not finite, step 151` */
export function standoutText({ layer, reason, step }: Pick<Standout, 'layer' | 'reason' | 'step'>): string {
  return `${layer} ${reason}, step ${step}`
}

export const MOST_STANDOUTS = 8
/** Of the other layers, or of its own past: a gradient this many times as large stands out. */
const EXPLODED = 30
const VANISHED = 1e-4
const FAST_UPDATE = 0.1
const DEAD = 0.95
/** One key has nearly all of the attention, of every query. */
const COLLAPSED_ENTROPY = 0.01

/** Worst first, one for each layer. */
export function standouts(course: LayerCourse): readonly Standout[] {
  const { brokeFirst = null } = course
  const found = new Map<string, Standout & { readonly weight: number }>()
  const add = (weight: number, index: number, figure: LayerFigureName, step: number, value: Reading, reason: string) => {
    const layer = course.layers[index]
    if (layer !== undefined && (found.get(layer)?.weight ?? 0) < weight) found.set(layer, { layer, figure, step, value, reason, weight })
  }
  course.layers.forEach((_, index) => {
    const broken = firstLook(course, 'non_finite_share', index, (value) => !(value === 0))
    // Once one is broken, the others follow within a step.
    const isFollower = brokeFirst !== null && broken !== null && broken.step >= brokeFirst.step
    if (broken && !isFollower)
      add(1e9 - broken.step, index, 'non_finite_share', broken.step, broken.value, 'has values that are not finite')
    const update = lastOf(course, 'update_ratio', index)
    if (update && update.value > FAST_UPDATE)
      add(10 + update.value, index, 'update_ratio', update.step, update.value, 'changes by more than a tenth of its weights in a step')
    const dead = lastOf(course, 'dead_share', index)
    if (dead && dead.value > DEAD) add(5 + dead.value, index, 'dead_share', dead.step, dead.value, 'puts out hardly anything but 0')
    const entropy = lastOf(course, 'attention_entropy', index)
    if (entropy && entropy.value < COLLAPSED_ENTROPY)
      add(5, index, 'attention_entropy', entropy.step, entropy.value, 'attends to one position only')
  })
  if (brokeFirst) {
    const reason = `was the first with ${brokeFirst.part} that are not finite`
    add(1e9, course.layers.indexOf(brokeFirst.layer), 'non_finite_share', brokeFirst.step, null, reason)
  }
  const norms = course.layers.map((_, index) => lastOf(course, 'gradient_norm', index))
  const middle = median(norms.flatMap((norm) => (norm && norm.value > 0 ? norm.value : [])))
  norms.forEach((norm, index) => {
    if (!norm || middle === null) return
    const own = median((course.values.gradient_norm?.[index] ?? []).flatMap((value) => (isKnown(value) && value > 0 ? value : [])))
    const times = Math.min(
      norm.value / middle,
      own === null ? Number.POSITIVE_INFINITY : Math.max(norm.value / own, norm.value / middle / 10),
    )
    if (times > EXPLODED)
      add(10 + Math.log10(times), index, 'gradient_norm', norm.step, norm.value, 'has a far larger gradient than the others')
    else if (norm.value < VANISHED * middle) add(3, index, 'gradient_norm', norm.step, norm.value, 'gets hardly any gradient')
  })
  return [...found.values()]
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MOST_STANDOUTS)
    .map(({ weight, ...one }) => one)
}

function isKnown(value: Reading): value is number {
  return value !== null && Number.isFinite(value)
}

function firstLook(course: LayerCourse, figure: LayerFigureName, index: number, is: (value: number) => boolean) {
  const row = course.values[figure]?.[index] ?? []
  const look = row.findIndex((value) => value !== null && is(value))
  return look === -1 ? null : { step: course.steps[look] ?? 0, value: row[look] ?? null }
}

function lastOf(course: LayerCourse, figure: LayerFigureName, index: number): { readonly step: number; readonly value: number } | null {
  const row = course.values[figure]?.[index] ?? []
  for (let look = row.length - 1; look >= 0; look--) {
    const value = row[look] ?? null
    if (isKnown(value)) return { step: course.steps[look] ?? 0, value }
  }
  return null
}

function median(values: readonly number[]): Reading {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? null
}
