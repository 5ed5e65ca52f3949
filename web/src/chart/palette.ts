/** The colors of the page, for canvases: read from the style sheet, so that both follow the same preference. */

export interface ChartColors {
  readonly text: string
  readonly faint: string
  readonly grid: string
  readonly pale: string
  readonly warning: string
  readonly critical: string
  readonly mark: string
  readonly series: readonly string[]
}

/** Position in the palette; `pale`: for what belongs to nobody. */
export type SeriesColor = number | 'pale'

const SERIES = 8

export function readColors(): ChartColors {
  const style = getComputedStyle(document.documentElement)
  const color = (name: string) => style.getPropertyValue(name).trim()
  return {
    text: color('--text'),
    faint: color('--faint'),
    grid: color('--grid'),
    pale: color('--pale'),
    warning: color('--warning'),
    critical: color('--critical'),
    mark: color('--mark'),
    series: Array.from({ length: SERIES }, (_, index) => color(`--series-${index + 1}`)),
  }
}

export function seriesColor(palette: ChartColors, color: SeriesColor): string {
  return color === 'pale' ? palette.pale : (palette.series[color % SERIES] ?? palette.text)
}

export function seriesClass(color: SeriesColor): string {
  return `series-${color === 'pale' ? color : (color % SERIES) + 1}`
}

/** The same color, seen through. */
export function translucent(color: string, alpha: number): string {
  const [, red = '00', green = '00', blue = '00'] = /^#(..)(..)(..)$/.exec(color) ?? []
  return `rgba(${Number.parseInt(red, 16)}, ${Number.parseInt(green, 16)}, ${Number.parseInt(blue, 16)}, ${alpha})`
}
