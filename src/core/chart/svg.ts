/** The few pieces of SVG that a chart is made of. Text from outside is escaped here and nowhere else. */
import { escapeHtml } from '../escape-html.ts'

export const FONT_FAMILY =
  "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"

export interface TextStyle {
  readonly size: number
  readonly color: string
  readonly anchor?: 'start' | 'middle' | 'end'
  readonly bold?: boolean
}

/** Characters that XML forbids are dropped, not escaped: one of them makes the whole picture unreadable. */
export function escapeXml(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids them
  const forbidden = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/g
  return escapeHtml(text.replace(/\p{Surrogate}/gu, '\ufffd').replace(forbidden, ' '))
}

export function coordinate(value: number): string {
  const rounded = Math.round(value * 10) / 10
  return String(Object.is(rounded, -0) ? 0 : rounded)
}

export function textElement(x: number, y: number, text: string, style: TextStyle): string {
  const anchor = style.anchor === undefined || style.anchor === 'start' ? '' : ` text-anchor="${style.anchor}"`
  const weight = style.bold === true ? ' font-weight="600"' : ''
  return `<text x="${coordinate(x)}" y="${coordinate(y)}" font-size="${style.size}" fill="${style.color}"${anchor}${weight}>${escapeXml(text)}</text>`
}

export function lineElement(x1: number, y1: number, x2: number, y2: number, color: string, extra = ''): string {
  return `<line x1="${coordinate(x1)}" y1="${coordinate(y1)}" x2="${coordinate(x2)}" y2="${coordinate(y2)}" stroke="${color}"${extra}/>`
}

export function rectElement(x: number, y: number, width: number, height: number, fill: string, extra = ''): string {
  return `<rect x="${coordinate(x)}" y="${coordinate(y)}" width="${coordinate(width)}" height="${coordinate(height)}" fill="${fill}"${extra}/>`
}

/** Estimated width of text without a font, on the wide side. */
export function textWidth(text: string, size: number): number {
  let units = 0
  for (const character of text) {
    if ("iljtfrI.,:;'|!()[] ".includes(character)) units += 0.34
    else if ('mwMW%@'.includes(character)) units += 0.9
    else if (character >= 'A' && character <= 'Z') units += 0.68
    else units += character > '\u2e80' ? 1.05 : 0.58
  }
  return units * size
}

/** Cut with an ellipsis so that it fits. */
export function fitText(text: string, size: number, width: number): string {
  if (textWidth(text, size) <= width) return text
  const characters = [...text]
  while (characters.length > 1 && textWidth(`${characters.join('')}…`, size) > width) characters.pop()
  return `${characters.join('').trimEnd()}…`
}
