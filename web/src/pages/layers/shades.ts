/** How dark a value of a layer is drawn: by its order of magnitude where the figure has one, else by its size. */
import { LAYER_FIGURES, type LayerFigureName } from '../../../../src/core/layer-figures.ts'

type Value = number | null

/** The rarest values at both ends share a shade, so that one of them does not make all others alike. */
const OUTLIERS = 0.02

export interface Shades {
  /** 0 to 1; null: not known. Not finite is always 1. */
  readonly of: (value: Value) => number | null
  readonly least: number | null
  readonly most: number | null
}

export function shadesOf(figure: LayerFigureName, data: readonly (readonly Value[])[]): Shades {
  const { unit, isLogarithmic } = LAYER_FIGURES[figure]
  const known = data.flat().filter((value): value is number => value !== null && Number.isFinite(value) && (!isLogarithmic || value > 0))
  known.sort((a, b) => a - b)
  const at = (share: number) => known[Math.round(share * (known.length - 1))] ?? null
  const [least, most] = unit === 'ratio' ? [0, 1] : [at(OUTLIERS), at(1 - OUTLIERS)]
  const scale = isLogarithmic ? Math.log : (value: number) => value
  const of = (value: Value) => {
    if (value === null) return null
    if (!Number.isFinite(value)) return 1
    if (isLogarithmic && value <= 0) return 0
    if (least === null || most === null || most <= least) return 0.5
    return Math.min(1, Math.max(0, (scale(value) - scale(least)) / (scale(most) - scale(least))))
  }
  return { of, least, most }
}
