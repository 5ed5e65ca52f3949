/** The colours of the page, for canvases: read from the style sheet, so that both follow the same preference. */
import { signal } from '@preact/signals'

export interface ChartColors {
  readonly text: string
  readonly faint: string
  readonly grid: string
  readonly warning: string
  readonly critical: string
  readonly mark: string
  readonly series: readonly string[]
}

const SERIES = 8

function read(): ChartColors {
  const style = getComputedStyle(document.documentElement)
  const color = (name: string) => style.getPropertyValue(name).trim()
  return {
    text: color('--text'),
    faint: color('--faint'),
    grid: color('--grid'),
    warning: color('--warning'),
    critical: color('--critical'),
    mark: color('--mark'),
    series: Array.from({ length: SERIES }, (_, index) => color(`--series-${index + 1}`)),
  }
}

/** Changes with the preference for dark or light. */
export const colors = signal<ChartColors>(read())

export function refreshColors(): void {
  colors.value = read()
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', refreshColors)

export function seriesColor(palette: ChartColors, index: number): string {
  return palette.series[index % SERIES] ?? palette.text
}

/** The same colour, seen through. */
export function translucent(color: string, alpha: number): string {
  const [, red = '00', green = '00', blue = '00'] = /^#(..)(..)(..)$/.exec(color) ?? []
  return `rgba(${Number.parseInt(red, 16)}, ${Number.parseInt(green, 16)}, ${Number.parseInt(blue, 16)}, ${alpha})`
}
