import { formatAge, formatMegahertz, formatPercent, printable, shortModel } from '../core/format.ts'
import { clockReasons, powerTone, temperatureTone } from '../core/gpu-words.ts'
import type { GpuSample, Reading } from '../core/model.ts'
import { forecastSpan } from './gpu-card.ts'
import { graphRows } from './graph.ts'
import { BOLD, SELECTED, type Style, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import type { GpuData } from './screen-data.ts'
import { padEnd, padStart } from './text-width.ts'
import { memoryStyle, shortBytes, styleOf, troubleOf } from './words.ts'

interface RowColumns {
  readonly name: number
  readonly bar: number
  readonly graph: number
  readonly hasClock: boolean
  readonly hasActivity: boolean
}

/** What fits: figures first, then longer bars, the name, the past, clocks, activity. */
export function rowColumns(width: number): RowColumns {
  return {
    name: width >= 96 ? 18 : width >= 76 ? 12 : 0,
    bar: width >= 110 ? 12 : width >= 60 ? 8 : width >= 44 ? 4 : 3,
    graph: width >= 170 ? 30 : width >= 130 ? 16 : width >= 90 ? 8 : 0,
    hasClock: width >= 120,
    hasActivity: width >= 150,
  }
}

export function drawGpuRow(painter: Painter, gpu: GpuData, x: number, y: number, width: number, at: number, isSelected: boolean): void {
  const { info, sample, live, ageMs } = gpu.view
  const { grid } = painter
  const columns = rowColumns(width)
  painter.hit({ x, y, width, height: 1 }, { kind: 'gpu', id: info.id, index: info.index })
  let column = x + grid.put(x, y, `${padStart(info.label, 3)} `, TONE.title | BOLD)
  if (columns.name > 0) column += grid.put(column, y, `${padEnd(printable(shortModel(info)), columns.name)} `, TONE.text)
  const rest = () => x + width - column
  const trouble = sample === null ? 'no sample yet' : troubleOf(sample)
  if (sample === null || trouble !== null) grid.put(column, y, printable(trouble ?? ''), sample ? TONE.critical | BOLD : TONE.muted, rest())
  else {
    const tone = (style: Style): Style => (live ? style : TONE.faint)
    const total = sample.memoryTotalBytes ?? info.memoryTotalBytes
    const share = sample.memoryUsedBytes === null || !total ? null : sample.memoryUsedBytes / total
    column += grid.put(column, y, `${padStart(formatPercent(sample.utilizationRatio), 4)} `, tone(TONE.text))
    painter.bar(column, y, columns.bar, sample.utilizationRatio, tone(TONE.busy))
    column += columns.bar + 1
    if (columns.graph > 0) {
      grid.put(column, y, graphRows(gpu.utilization, columns.graph, 1, painter.ascii, gpu.phase)[0] ?? '', tone(TONE.busy))
      column += columns.graph + 1
    }
    column += grid.put(column, y, memoryText(sample, total, width), tone(TONE.text))
    painter.bar(column, y, columns.bar, share, tone(memoryStyle(share)))
    column += columns.bar + 1
    column += grid.put(
      column,
      y,
      padStart(whole(sample.temperatureCelsius, '°'), 4),
      tone(styleOf(temperatureTone(sample.temperatureCelsius, info))),
    )
    column += grid.put(
      column,
      y,
      padStart(whole(sample.powerWatts, 'W'), width < 44 ? 5 : 6),
      tone(styleOf(powerTone(sample.powerWatts, info))),
    )
    const more: Span[] = live ? extras(gpu, sample, columns, at) : [{ text: `${formatAge(ageMs ?? 0)} old`, style: TONE.warning }]
    painter.spans(column + 2, y, rest() - 2, more)
  }
  if (isSelected) grid.mark({ x, y, width, height: 1 }, SELECTED)
}

function memoryText(sample: GpuSample, total: Reading, width: number): string {
  if (width < 60) return `${padStart(shortBytes(sample.memoryUsedBytes), 6)} `
  return `${padStart(shortBytes(sample.memoryUsedBytes), 6)}/${padEnd(shortBytes(total), 6)}`
}

function extras(gpu: GpuData, sample: GpuSample, columns: RowColumns, at: number): Span[] {
  const clock = sample.smClockHertz ?? sample.graphicsClockHertz
  const activity = (name: string, ratio: Reading): Span => ({ text: `${name} ${padStart(formatPercent(ratio), 4)}`, style: TONE.muted })
  return [
    ...(columns.hasClock ? [{ text: padStart(formatMegahertz(clock), 8), style: TONE.muted }] : []),
    ...(columns.hasActivity ? [activity('SM', sample.smActiveRatio), activity('tensor', sample.tensorActiveRatio)] : []),
    forecastSpan(gpu, at),
    ...clockReasons(sample.clockEventReasons)
      .filter((reason) => reason.words !== 'idle')
      .map((reason) => ({ text: reason.short, style: styleOf(reason.tone) })),
  ]
}

function whole(value: Reading, unit: string): string {
  return value === null ? 'N/A' : `${Math.round(value)}${unit}`
}
