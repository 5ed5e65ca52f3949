/** Colors that people with any color vision can distinguish (after Okabe and Ito), on white. */
export interface Palette {
  readonly background: string
  readonly text: string
  readonly faintText: string
  readonly grid: string
  readonly axis: string
  readonly limit: string
  readonly mark: string
  readonly series: readonly string[]
}

export const PALETTE: Palette = {
  background: '#ffffff',
  text: '#1c2530',
  faintText: '#5a6673',
  grid: '#e6e9ed',
  axis: '#b4bcc6',
  limit: '#c8371c',
  mark: '#7a4b9a',
  series: ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#8c6d1f', '#5a6673', '#d55e00'],
}

export function seriesColor(palette: Palette, index: number): string {
  return palette.series[index % palette.series.length] ?? palette.text
}
