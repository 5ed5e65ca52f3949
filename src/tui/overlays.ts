/** What lies over the screen for a moment: help, menus, questions, details. */
import { evidenceRows } from '../core/evidence.ts'
import { messageAt } from '../core/forecast-words.ts'
import { formatAge, formatBytes, formatClock, formatPercent, printable } from '../core/format.ts'
import { alertRows } from './alert-rows.ts'
import { drawAlerts, drawSilence } from './alerts-overlay.ts'
import { box, menu, scrolled } from './box.ts'
import { graphRows } from './graph.ts'
import { BOLD, SELECTED, TONE } from './grid.ts'
import { HELP } from './help.ts'
import type { Painter, Span } from './painter.ts'
import { SORT_TITLES } from './process-panel.ts'
import { jobOf } from './process-rows.ts'
import { drawRanks } from './ranks-overlay.ts'
import { type KillQuestion, type Overlay, PANELS, type ProcessDetails, type ScreenData, SORTS, type View } from './screen-data.ts'
import { cut, padEnd, wrap } from './text-width.ts'
import { severityTone } from './words.ts'

export const SIGNALS = [
  { name: 'SIGINT', words: 'interrupt, like Ctrl-C' },
  { name: 'SIGTERM', words: 'ask it to exit' },
  { name: 'SIGKILL', words: 'end at once, nothing is saved' },
] as const

export function drawOverlay(painter: Painter, data: ScreenData, view: View, overlay: Overlay): void {
  // What lies below takes no clicks.
  painter.hits.length = 0
  switch (overlay.kind) {
    case 'help':
      drawHelp(painter, overlay.offset)
      break
    case 'sort':
      menu(
        painter,
        'Sort by',
        SORTS.map((sort) => `${padEnd(SORT_TITLES[sort], 9)}${sort === view.sort ? (view.descending ? 'reversed' : 'now') : ''}`),
        overlay.selected,
      )
      break
    case 'panels':
      menu(
        painter,
        'Panels',
        PANELS.map((panel) => `[${view.hidden.has(panel) ? ' ' : 'x'}] ${panel}`),
        overlay.selected,
      )
      break
    case 'alerts':
      drawAlerts(painter, data, overlay)
      break
    case 'silence':
      drawSilence(painter, overlay.finding, overlay.selected)
      break
    case 'finding':
      drawFinding(painter, data, overlay.fingerprint, overlay.offset, overlay.stacks ?? [])
      break
    case 'ranks':
      drawRanks(painter, data, overlay.run, overlay.offset)
      break
    case 'kill':
      drawKill(painter, overlay.question, overlay.selected)
      break
    case 'process':
      drawProcess(painter, data, overlay.details, overlay.showEnvironment, overlay.offset)
      break
  }
}

function drawHelp(painter: Painter, offset: number): void {
  const inner = box(painter, 'Keys', 70, HELP.length)
  scrolled(
    painter,
    inner,
    HELP.map(([key, what]) => [{ text: padEnd(key, 13), style: TONE.accent | BOLD }, { text: cut(what, Math.max(1, inner.width - 14)) }]),
    offset,
  )
}

function drawKill(painter: Painter, { pid, user, command, gpuLabel, memoryUsedBytes }: KillQuestion, selected: number): void {
  const wide = Math.min(72, painter.grid.width - 4)
  const text = wrap(`${command}`, wide).slice(0, 4)
  const inner = box(painter, `End process ${pid}?`, wide, text.length + SIGNALS.length + 3, 'Enter sends, Esc leaves it alone')
  painter.grid.put(inner.x, inner.y, `of ${user}, ${formatBytes(memoryUsedBytes)} on GPU ${gpuLabel}:`, TONE.muted, inner.width)
  text.forEach((line, index) => {
    painter.grid.put(inner.x, inner.y + 1 + index, line, TONE.text | BOLD, inner.width)
  })
  SIGNALS.forEach(({ name, words }, index) => {
    const rect = { x: inner.x, y: inner.y + text.length + 2 + index, width: inner.width, height: 1 }
    painter.spans(rect.x, rect.y, rect.width, [
      { text: padEnd(` ${name}`, 9), style: TONE.title | BOLD },
      { text: words, style: TONE.muted },
    ])
    if (index === selected) painter.grid.mark(rect, SELECTED)
    painter.hit(rect, { kind: 'choose', index })
  })
}

function drawFinding(painter: Painter, data: ScreenData, fingerprint: string, offset: number, stacks: readonly string[]): void {
  const finding = alertRows(data).find((row) => row.finding.fingerprint === fingerprint)?.finding
  const wide = Math.min(100, painter.grid.width - 4)
  if (!finding) {
    const inner = box(painter, 'Finding', wide, 1)
    painter.grid.put(inner.x, inner.y, 'it is resolved', TONE.muted)
    return
  }
  const lines: Span[][] = [
    [
      { text: finding.severity, style: severityTone(finding.severity) | BOLD },
      { text: finding.detector.replaceAll('_', ' ') },
      { text: `for ${formatAge(data.at - finding.since)}, confidence ${formatPercent(finding.confidence)}`, style: TONE.muted },
    ],
    ...wrap(messageAt(finding, data.at), wide).map((text) => [{ text }]),
    [],
    ...finding.advice.flatMap((advice) => wrap(`- ${advice}`, wide).map((text) => [{ text, style: TONE.accent }])),
    [],
    ...evidenceRows(finding.evidence, (at) => formatClock(at, data.now)).map(({ label, value }) => [
      { text: printable(`${label}: ${value}`), style: TONE.muted },
    ]),
    ...(stacks.length === 0 ? [] : [[], ...stacks.map((text) => [{ text: cut(text, wide) }])]),
  ]
  scrolled(painter, box(painter, 'Finding', wide, lines.length), lines, offset)
}

function drawProcess(painter: Painter, data: ScreenData, details: ProcessDetails, showEnvironment: boolean, offset: number): void {
  const wide = Math.min(110, painter.grid.width - 4)
  const now = data.processes.find((process) => process.pid === details.process.pid && process.gpu === details.process.gpu)
  const process = now ?? details.process
  const { info } = process
  const pair = (name: string, value: string): Span[] => [
    { text: padEnd(name, 11), style: TONE.muted },
    { text: cut(printable(value), wide - 12) },
  ]
  const memory = Array.from(data.processMemory(details.key))
  const most = Math.max(1, ...memory.filter((value) => Number.isFinite(value)))
  const graph = graphRows(
    memory.map((value) => value / most),
    Math.max(1, wide - 12),
    3,
    painter.ascii,
  )
  const lines: Span[][] = [
    ...(now ? [] : [[{ text: 'no longer on this GPU', style: TONE.warning | BOLD }]]),
    pair('user', `${info?.user ?? 'N/A'}${info?.uid == null ? '' : ` (${info.uid})`}`),
    pair(
      'GPU',
      `${details.gpuLabel}, ${process.type}, ${formatBytes(process.memoryUsedBytes)}, utilization ${formatPercent(process.smRatio)}`,
    ),
    pair(
      'host',
      `CPU ${formatPercent(info?.cpuRatio ?? null)}, RAM ${formatBytes(info?.residentBytes ?? null)}, state ${info?.state ?? 'N/A'}, parent ${info?.parentPid ?? 'N/A'}`,
    ),
    pair(
      'started',
      info?.startedAt == null ? 'N/A' : `${formatClock(info.startedAt, data.now)} (${formatAge(data.at - info.startedAt)} ago)`,
    ),
    pair('job', jobOf(process) || 'none'),
    pair('program', info?.executable ?? 'N/A'),
    pair('folder', details.folder ?? 'N/A'),
    ...wrap(info?.command?.join(' ') || info?.name || 'N/A', wide - 12).map((text, index) => [
      { text: padEnd(index === 0 ? 'command' : '', 11), style: TONE.muted },
      { text },
    ]),
    ...graph.map((text, index) => [
      { text: padEnd(index === 0 ? 'GPU memory' : index === 2 ? `max ${formatBytes(most)}` : '', 11), style: TONE.muted },
      { text, style: TONE.memory },
    ]),
    ...(details.note === null ? [] : [[{ text: details.note, style: TONE.muted }]]),
    ...(details.limits ?? []).map((limit, index) => [
      { text: padEnd(index === 0 ? 'limits' : '', 11), style: TONE.muted },
      { text: cut(printable(limit), wide - 12) },
    ]),
    ...environment(details, showEnvironment, wide),
  ]
  scrolled(
    painter,
    box(painter, `Process ${process.pid}`, wide, lines.length, details.environment ? 'e environment  Esc closes' : 'Esc closes'),
    lines,
    offset,
  )
}

function environment({ environment: variables }: ProcessDetails, isShown: boolean, wide: number): Span[][] {
  if (variables === null) return []
  if (!isShown)
    return [
      [
        { text: padEnd('environ', 11), style: TONE.muted },
        { text: `${variables.length} variables, hidden: e shows them`, style: TONE.muted },
      ],
    ]
  return variables.map((variable, index) => [
    { text: padEnd(index === 0 ? 'environ' : '', 11), style: TONE.muted },
    { text: cut(printable(variable), wide - 12) },
  ])
}
