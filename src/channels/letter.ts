/** A letter as text and as HTML. */
import type { Letter, LetterPart } from '../core/alert-contract.ts'
import { escapeHtml } from '../core/escape-html.ts'
import { pageOf } from './content-html.ts'
import type { Fact } from './evidence.ts'

export function letterText({ parts }: Letter, links: readonly Fact[]): string {
  const lines = parts.map(partText)
  if (links.length > 0) lines.push(links.map(({ label, value }) => `${label}: ${value}`).join('\n'))
  return `${lines.join('\n\n')}\n`
}

function partText(part: LetterPart): string {
  if ('text' in part) return part.text
  if ('list' in part) return part.list.map((line) => `  - ${line}`).join('\n')
  const widths = (part.table[0] ?? []).map((_, column) => Math.max(...part.table.map((row) => row[column]?.length ?? 0)))
  const cell = (text: string, column: number) => (column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0))
  return part.table.map((row) => `  ${row.map(cell).join('  ')}`.trimEnd()).join('\n')
}

export function letterHtml({ subject, parts }: Letter, links: readonly Fact[]): string {
  const inside = parts.map(partHtml).join('\n')
  const card = `<tr><td style="background:#ffffff;border:1px solid #dde2e7;border-radius:6px;padding:16px 18px">${inside}</td></tr><tr><td style="height:12px"></td></tr>`
  return pageOf(subject, [card], links)
}

function partHtml(part: LetterPart): string {
  if ('text' in part) return `<p style="margin:0 0 12px">${escapeHtml(part.text).replaceAll('\n', '<br>')}</p>`
  if ('list' in part)
    return `<ul style="margin:0 0 12px;padding-left:20px">${part.list.map((line) => `<li style="margin:2px 0">${escapeHtml(line)}</li>`).join('')}</ul>`
  const row = (cells: readonly string[], isHead: boolean) =>
    `<tr>${cells
      .map((text, column) => {
        const style = `padding:3px 10px 3px 0;text-align:${column === 0 ? 'left' : 'right'};${isHead ? 'font-weight:600;border-bottom:1px solid #dde2e7' : ''}`
        return `<td style="${style}">${escapeHtml(text)}</td>`
      })
      .join('')}</tr>`
  return `<table cellpadding="0" cellspacing="0" style="margin:0 0 12px;border-collapse:collapse">${part.table.map((cells, index) => row(cells, index === 0)).join('')}</table>`
}
