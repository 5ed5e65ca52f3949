/** The figures of layers in a line of a step: columns by figure, in the order of `names`. */
import { LAYER_FIGURE_NAMES, type LayerFigureName } from '../core/layer-figures.ts'
import type { NonFiniteLayer } from '../core/model.ts'
import { textNumber } from '../core/recording/json.ts'

export const MOST_LAYERS = 256
export const LONGEST_LAYER_NAME = 200

/** A figure that is not known is NaN here, one that is not finite is infinite: they are kept in single precision. */
export interface LayerLook {
  readonly names: readonly string[]
  readonly figures: ReadonlyMap<LayerFigureName, Float32Array>
}

/** Text: what is wrong with it. */
export function readLayers(given: unknown): LayerLook | string {
  const { names, ...columns } = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
  const isName = (name: unknown) => typeof name === 'string' && name.length <= LONGEST_LAYER_NAME
  if (!Array.isArray(names) || names.length === 0 || names.length > MOST_LAYERS || !names.every(isName))
    return `layers.names: expected 1 to ${MOST_LAYERS} names of at most ${LONGEST_LAYER_NAME} characters`
  const figures = new Map<LayerFigureName, Float32Array>()
  for (const name of LAYER_FIGURE_NAMES) {
    const column = columns[name]
    if (column === undefined || column === null) continue
    if (!Array.isArray(column) || column.length !== names.length) return `layers.${name}: expected ${names.length} numbers`
    figures.set(name, Float32Array.from(column, stored))
  }
  return { names: names as string[], figures }
}

export function readNonFinite(given: unknown): NonFiniteLayer | null {
  const { layer, part } = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
  if (typeof layer !== 'string' || layer === '' || (part !== 'weights' && part !== 'activations' && part !== 'gradients')) return null
  return { layer: layer.slice(0, LONGEST_LAYER_NAME), part }
}

function stored(value: unknown): number {
  const number = typeof value === 'number' ? value : textNumber(value)
  return number === undefined ? Number.NaN : Number.isFinite(number) ? number : Number.POSITIVE_INFINITY
}
