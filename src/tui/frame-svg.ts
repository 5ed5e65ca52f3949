/** A frame as a picture: what the documentation shows is what the program draws. */
import { escapeXml } from '../core/chart/svg.ts'
import { BOLD, type Grid } from './grid.ts'
import type { Theme } from './theme.ts'

const CELL_WIDTH = 8.4
const CELL_HEIGHT = 17
const MARGIN = 12

export function frameSvg(grid: Grid, theme: Theme): string {
  const width = grid.width * CELL_WIDTH + 2 * MARGIN
  const height = grid.height * CELL_HEIGHT + 2 * MARGIN
  const parts: string[] = []
  for (let row = 0; row < grid.height; row++) {
    for (let column = 0; column < grid.width; ) {
      const style = grid.styles[row * grid.width + column] ?? 0
      let end = column
      let text = ''
      while (end < grid.width && (grid.styles[row * grid.width + end] ?? 0) === style) {
        text += grid.chars[row * grid.width + end] ?? ''
        end++
      }
      parts.push(...run(text, style, MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT, end - column, theme))
      column = end
    }
  }
  const back = theme.name === 'light' ? '#ffffff' : '#16181d'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(1)} ${height}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" xml:space="preserve">
<rect width="100%" height="100%" rx="6" fill="${back}"/>
${parts.join('\n')}
</svg>
`
}

function run(text: string, style: number, x: number, y: number, cells: number, theme: Theme): string[] {
  const { front, back } = theme.color(style)
  const width = (cells * CELL_WIDTH).toFixed(1)
  const parts = back === null ? [] : [`<rect x="${x.toFixed(1)}" y="${y}" width="${width}" height="${CELL_HEIGHT}" fill="${back}"/>`]
  if (text.trim() === '') return parts
  const lead = text.length - text.trimStart().length
  const shown = text.trim()
  const weight = style & BOLD ? ' font-weight="bold"' : ''
  // The length is set, so that every font keeps the columns.
  parts.push(
    `<text x="${(x + lead * CELL_WIDTH).toFixed(1)}" y="${y + 13}" fill="${front}"${weight} textLength="${(shown.length * CELL_WIDTH).toFixed(1)}" lengthAdjust="spacingAndGlyphs">${escapeXml(shown)}</text>`,
  )
  return parts
}
