import { formatAge, formatBytes, formatClock, formatPercent, formatUsed, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { GpuInfo, SourceHealth } from '../core/model.ts'
import type { PlaybackState } from '../core/playback.ts'
import { graphRows } from './graph.ts'
import { BOLD, type Rect, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import type { ReplayData, ScreenData, View } from './screen-data.ts'
import { textWidth } from './text-width.ts'
import { shortDuration } from './words.ts'

/** A sample younger than this many intervals is not highlighted. */
const OLD_INTERVALS = 3

export function drawStatus(painter: Painter, data: ScreenData, view: View, { x, y, width }: Rect): void {
  const right: Span[] = [
    { text: view.paused && !data.replay ? 'PAUSED' : '', style: TONE.accent | BOLD },
    data.playback ? playbackSpan(data.playback) : replaySpan(data.replay),
    ageSpan(data),
    {
      text: data.overhead === null ? '' : `self ${formatPercent(data.overhead.cpuRatio)} ${formatBytes(data.overhead.residentBytes)}`,
      style: TONE.muted,
    },
    { text: formatClock(data.at, data.now), style: TONE.muted },
  ]
  const mark = data.provenance === 'simulated' ? 'SIMULATED' : data.provenance === 'replay' ? 'REPLAY' : ''
  const driver = data.gpus[0]?.view.info
  const left: Span[] = [
    { text: ` ${printable(data.hostname) || 'gpuwarden'}`, style: TONE.title | BOLD },
    { text: mark, style: TONE.simulated | BOLD },
    { text: data.origin, style: TONE.muted },
    { text: mark === '' ? versions(driver) : '', style: TONE.muted },
  ]
  const least = left.slice(0, 2).reduce((sum, span) => sum + textWidth(span.text) + 2, 0)
  const begin = painter.spansRight(x + width - 1, y, Math.max(0, width - least - 2), right)
  painter.spans(x, y, begin - x - 2, left)
}

function versions(info: GpuInfo | undefined): string {
  const driver = info?.driverVersion == null ? '' : `driver ${printable(info.driverVersion)}`
  return info?.cudaVersion == null ? driver : `${driver}  CUDA ${printable(info.cudaVersion)}`
}

function ageSpan({ ageMs, intervalMs, replay, playback }: ScreenData): Span {
  if (replay || playback) return { text: '' }
  if (ageMs === null) return { text: 'no sample yet', style: TONE.muted }
  const isOld = ageMs > OLD_INTERVALS * intervalMs + 1000
  return { text: `age ${ageMs < 1000 ? '<1 s' : formatAge(ageMs)}`, style: isOld ? TONE.warning | BOLD : TONE.muted }
}

function replaySpan(replay: ReplayData | null): Span {
  if (!replay) return { text: '' }
  const at = shortDuration(replay.at - replay.firstAt)
  const end = replay.lastAt === null ? '' : `/${shortDuration(replay.lastAt - replay.firstAt)}`
  const pace = replay.state === 'playing' ? `x${replay.speed}` : replay.state.toUpperCase()
  return { text: `${at}${end} ${pace}`, style: TONE.accent | BOLD }
}

/** Of the recording that the agent plays. */
function playbackSpan({ state, speed }: PlaybackState): Span {
  return { text: `RECORDING ${state === 'playing' ? `x${speed ?? 'max'}` : state.toUpperCase()}`, style: TONE.accent | BOLD }
}

/** Why there are no readings, one line each. */
export function troubleLines(data: ScreenData): string[] {
  const lines = data.health
    .filter((source) => source.state !== 'ok' && source.state !== 'starting' && source.state !== 'ended')
    .map((source) => trouble(source, data.now))
  if (data.linkLost)
    lines.unshift(`no answer from the agent since ${formatClock(data.linkLost.since, data.now)}: ${printable(data.linkLost.reason)}`)
  return lines
}

function trouble(source: SourceHealth, now: number): string {
  const what = source.state === 'not_responding' ? `${source.source} driver not responding` : `${source.source} ${source.state}`
  const next = source.nextStartAt === null || source.nextStartAt <= now ? '' : `; next try in ${formatAge(source.nextStartAt - now)}`
  return `${what} since ${formatClock(source.since, now)}${next}: ${printable(source.message ?? '')}`
}

export function drawHost(painter: Painter, data: ScreenData, { x, y, width }: Rect): void {
  if (!data.host) {
    painter.grid.put(x + 1, y, `host ${NOT_AVAILABLE}`, TONE.muted, width - 1)
    return
  }
  const { sample, live, cpu, memory } = data.host
  const tone = live ? TONE.text : TONE.faint
  const bar = width >= 100 ? 14 : width >= 64 ? 8 : 0
  const share = sample.memoryUsedBytes === null || !sample.memoryTotalBytes ? null : sample.memoryUsedBytes / sample.memoryTotalBytes
  const ramTone = share !== null && share >= 0.95 ? TONE.critical : share !== null && share >= 0.9 ? TONE.warning : TONE.memory
  let column = x + 1
  const past = width >= 150 ? 20 : width >= 120 ? 10 : 0
  const part = (label: string, ratio: number | null, style: number, before: ArrayLike<number>): void => {
    const shown = live ? style : TONE.faint
    column += painter.grid.put(column, y, label, tone, x + width - column)
    if (bar > 0) {
      painter.bar(column + 1, y, bar, ratio, shown)
      column += bar + 1
    }
    if (past > 0) {
      painter.grid.put(column + 1, y, graphRows(before, past, 1, painter.ascii)[0] ?? '', shown, past)
      column += past + 1
    }
    column += 2
  }
  part(`CPU ${formatPercent(sample.cpuRatio)}${sample.cpuCount === null ? '' : ` of ${sample.cpuCount}`}`, sample.cpuRatio, TONE.busy, cpu)
  part(`RAM ${formatUsed(sample.memoryUsedBytes, sample.memoryTotalBytes)}`, share, ramTone, memory)
  painter.spans(column, y, x + width - column - 1, [
    { text: sample.load1 === null ? '' : `load ${sample.load1.toFixed(1)}`, style: TONE.muted },
    {
      text: sample.swapUsedBytes === null || sample.swapTotalBytes === 0 ? '' : `swap ${formatBytes(sample.swapUsedBytes)}`,
      style: TONE.muted,
    },
    { text: sample.diskFreeBytes === null ? '' : `disk free ${formatBytes(sample.diskFreeBytes)}`, style: TONE.muted },
    { text: live ? '' : 'old', style: TONE.warning },
  ])
}

const KEYS: readonly (readonly [string, string, string])[] = [
  ['q', 'Quit', 'q'],
  ['?', 'Help', '?'],
  ['/', 'Filter', '/'],
  ['o', 'Sort', 'o'],
  ['Enter', 'Details', 'enter'],
  ['k', 'Kill', 'k'],
  ['Space', 'Pause', ' '],
  ['a', 'Alerts', 'a'],
  ['t', 'Tree', 't'],
  ['p', 'Panels', 'p'],
  ['Tab', 'Next panel', 'tab'],
  ['1-9', 'One GPU', '1'],
  ['s', 'Save', 's'],
  ['r', 'Reset', 'r'],
]
const REPLAY_KEYS: readonly (readonly [string, string, string])[] = [
  ['q', 'Quit', 'q'],
  ['?', 'Help', '?'],
  ['Space', 'Pause', ' '],
  ['[', '-10 s', '['],
  [']', '+10 s', ']'],
  ['-', 'Slower', '-'],
  ['+', 'Faster', '+'],
]

export function drawKeys(painter: Painter, data: ScreenData, view: View, { x, y, width }: Rect): void {
  if (view.isFiltering) {
    painter.spans(x + 1, y, width - 2, [
      { text: `/${view.filter}${painter.ascii ? '_' : '▏'}`, style: TONE.accent | BOLD },
      { text: 'Enter keeps, Esc clears', style: TONE.muted },
    ])
    return
  }
  if (view.message) {
    painter.grid.put(x + 1, y, view.message.text, view.message.isTrouble ? TONE.warning | BOLD : TONE.accent, width - 2)
    return
  }
  let column = x + 1
  const keys = data.replay ? [...REPLAY_KEYS, ...KEYS.slice(2).filter(([key]) => key !== 'Space')] : KEYS
  for (const [key, what, action] of keys) {
    if (key === 'k' && data.isReadonly) continue
    const room = key.length + what.length + 1
    if (column + room > x + width) break
    painter.hit({ x: column, y, width: room, height: 1 }, { kind: 'key', key: action })
    column += painter.grid.put(column, y, key, TONE.accent | BOLD)
    column += painter.grid.put(column, y, ` ${what}`, TONE.muted) + 2
  }
}
