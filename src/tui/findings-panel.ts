import { messageAt } from '../core/forecast-words.ts'
import { printable } from '../core/format.ts'
import { openAlertsInWords } from '../core/known/alerts.ts'
import type { Finding } from '../core/model.ts'
import { BOLD, type Rect, SELECTED, TONE } from './grid.ts'
import type { Painter } from './painter.ts'
import type { ScreenData, Scroll, View } from './screen-data.ts'
import { follow, range } from './scroll.ts'
import { padEnd, padStart } from './text-width.ts'
import { severitySign, severityTone, shortDuration } from './words.ts'

export function drawFindings(painter: Painter, data: ScreenData, view: View, { x, y, width, height }: Rect): Scroll {
  const isFocused = view.focus === 'findings' && view.overlay === null
  const { findings } = data
  const alerts = data.alerts === null ? '' : openAlertsInWords(data.alerts)
  const hasTitle = height >= 2
  const visible = Math.max(1, height - (hasTitle ? 1 : 0))
  const kept = follow(view.scroll.findings, findings.length, visible)
  if (hasTitle) {
    painter.rule(
      x,
      y,
      width,
      [{ text: `Findings ${range(kept, visible, findings.length)}` }, { text: alerts }, { text: 'a: all', style: TONE.muted }],
      isFocused,
    )
    painter.hit({ x, y, width, height: 1 }, { kind: 'panel', panel: 'findings' })
  }
  if (findings.length === 0) painter.grid.put(x + 1, y + (hasTitle ? 1 : 0), 'no findings', TONE.muted, width - 2)
  findings.slice(kept.offset, kept.offset + visible).forEach((finding, index) => {
    const row = y + (hasTitle ? 1 : 0) + index
    drawFindingLine(painter, finding, x, row, width, data.at)
    painter.hit({ x, y: row, width, height: 1 }, { kind: 'row', panel: 'findings', index: kept.offset + index })
    if (isFocused && kept.offset + index === kept.selected) painter.grid.mark({ x, y: row, width, height: 1 }, SELECTED)
  })
  return kept
}

export function drawFindingLine(painter: Painter, finding: Finding, x: number, y: number, width: number, at: number): void {
  const { grid } = painter
  const isOver = finding.state === 'resolved'
  const tone = isOver ? TONE.muted : severityTone(finding.severity)
  let column = x + grid.put(x, y, ` ${isOver ? 'ok' : severitySign(finding.severity)}`, tone | BOLD, width)
  if (width >= 60) {
    column += grid.put(column, y, ` ${padStart(shortDuration(at - finding.since), 6)} `, TONE.muted, x + width - column)
    column += grid.put(column, y, padEnd(finding.detector.replaceAll('_', ' '), 16), tone, x + width - column)
  }
  grid.put(column + 1, y, printable(messageAt(finding, at)), isOver ? TONE.muted : TONE.text, x + width - column - 1)
}
