import { messageAt } from '../core/forecast-words.ts'
import { printable } from '../core/format.ts'
import { openAlertsInWords } from '../core/known/alerts.ts'
import { findingsInWords } from '../core/known/findings.ts'
import type { Finding } from '../core/model.ts'
import { type AlertRow, alertRows, chosenAlert } from './alert-rows.ts'
import { box } from './box.ts'
import { BOLD, type Rect, SELECTED, TONE } from './grid.ts'
import type { Painter } from './painter.ts'
import type { ScreenData } from './screen-data.ts'
import { follow } from './scroll.ts'
import { padEnd, padStart, textWidth, wrap } from './text-width.ts'
import { severitySign, severityTone, shortDuration } from './words.ts'

export const SILENCE_CHOICES = ['leave it', 'silence it for 4 hours: no notifications'] as const

/** From here on there is room for age and detector beside the message. */
const WIDE = 60
const NARROW_WORDS = 10

export function drawAlerts(
  painter: Painter,
  data: ScreenData,
  overlay: { readonly selected: number; readonly fingerprint: string | null },
): void {
  const rows = alertRows(data)
  const selected = chosenAlert(rows, overlay)
  const height = Math.max(3, Math.min(rows.length, painter.grid.height - 4))
  const said = findingsInWords(data.findings)
  const title = data.alerts === null ? said : `${openAlertsInWords(data.alerts)}, ${said}`
  const inner = box(painter, title, painter.grid.width - 4, height, foot(data, painter.grid.width))
  if (rows.length === 0) painter.grid.put(inner.x, inner.y, 'no findings since the start', TONE.muted, inner.width)
  const kept = follow({ offset: 0, selected }, rows.length, inner.height)
  const words = Math.max(0, ...rows.map((row) => textWidth(row.words)))
  rows.slice(kept.offset, kept.offset + inner.height).forEach((row, index) => {
    const rect = { x: inner.x, y: inner.y + index, width: inner.width, height: 1 }
    drawRow(painter, row, rect, data.at, inner.width >= WIDE ? words : Math.min(words, NARROW_WORDS))
    if (kept.offset + index === kept.selected) painter.grid.mark(rect, SELECTED)
    painter.hit(rect, { kind: 'choose', index: kept.offset + index })
  })
}

function foot({ alerts, isReadonly }: ScreenData, width: number): string {
  const keys = alerts === null || isReadonly ? 'Enter details' : 'Enter details  A acknowledge 4 h  S silence 4 h'
  return `${width >= WIDE + 10 ? keys : alerts === null || isReadonly ? 'Enter' : 'Enter A S'}  Esc closes`
}

function drawRow(painter: Painter, { finding, words, tone }: AlertRow, { x, y, width }: Rect, at: number, room: number): void {
  const { grid } = painter
  const isOver = finding.state === 'resolved'
  const severity = isOver ? TONE.muted : severityTone(finding.severity)
  const end = x + width
  let column = x + grid.put(x, y, isOver ? 'ok' : severitySign(finding.severity), severity | BOLD, width)
  if (width >= WIDE) {
    column += grid.put(column, y, ` ${padStart(shortDuration(at - finding.since), 6)} `, TONE.muted, end - column)
    column += grid.put(column, y, padEnd(finding.detector.replaceAll('_', ' '), 16), severity, end - column)
  }
  if (room > 0) column += grid.put(column, y, ` ${padEnd(words, room)}`, tone | BOLD, Math.min(room + 1, end - column))
  grid.put(column + 1, y, printable(messageAt(finding, at)), isOver ? TONE.muted : TONE.text, end - column - 1)
}

export function drawSilence(painter: Painter, finding: Finding, selected: number): void {
  const wide = Math.min(72, painter.grid.width - 4)
  const text = wrap(printable(finding.message), wide).slice(0, 4)
  const inner = box(painter, 'Silence this alert?', wide, text.length + SILENCE_CHOICES.length + 1, 'Enter does it, Esc leaves it')
  text.forEach((line, index) => {
    painter.grid.put(inner.x, inner.y + index, line, TONE.text | BOLD, inner.width)
  })
  SILENCE_CHOICES.forEach((choice, index) => {
    const rect = { x: inner.x, y: inner.y + text.length + 1 + index, width: inner.width, height: 1 }
    painter.grid.put(rect.x, rect.y, padEnd(` ${choice}`, rect.width), TONE.text, rect.width)
    if (index === selected) painter.grid.mark(rect, SELECTED)
    painter.hit(rect, { kind: 'choose', index })
  })
}
