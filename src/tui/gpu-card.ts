/** One GPU as a card: figures at the left, its recent past at the right. */
import {
  formatAge,
  formatClock,
  formatMegahertz,
  formatPercent,
  formatUsed,
  formatWhole,
  NOT_AVAILABLE,
  printable,
  shortModel,
} from '../core/format.ts'
import { clockReasons, heatTone, powerCap, powerTone, temperatureTone } from '../core/gpu-words.ts'
import { ledgerLabel } from '../core/memory/oom-report.ts'
import type { GpuInfo, GpuSample, Reading } from '../core/model.ts'
import { activity, links, linksLine, memoryErrors } from './gpu-lines.ts'
import { columnOf, graphRows } from './graph.ts'
import { BOLD, type Rect, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import type { GpuData } from './screen-data.ts'
import { padEnd, padStart, wrap } from './text-width.ts'
import { computeModeWords, memoryStyle, severityTone, shortBytes, styleOf, troubleOf } from './words.ts'

export const CARD_ROWS = 4
const FIGURES_WIDTH = 52
const LEAST_GRAPH = 14
const TWO_GRAPHS = 44

export interface CardContext {
  readonly now: number
  readonly at: number
  readonly isSelected: boolean
}

export function drawCard(painter: Painter, gpu: GpuData, rect: Rect, context: CardContext): void {
  const { x, y, width, height } = rect
  const { info, sample } = gpu.view
  painter.hit(rect, { kind: 'gpu', id: info.id, index: info.index })
  header(painter, gpu, rect, context)
  if (sample === null) {
    painter.grid.put(x + 2, y + 1, 'no sample yet', TONE.muted, width - 2)
    return
  }
  const trouble = troubleOf(sample)
  if (trouble !== null) {
    wrap(printable(trouble), width - 3)
      .slice(0, height - 1)
      .forEach((line, index) => {
        painter.grid.put(x + 2, y + 1 + index, line, TONE.critical | BOLD, width - 3)
      })
    return
  }
  const graphWidth = width - FIGURES_WIDTH - 3
  const hasGraph = graphWidth >= LEAST_GRAPH
  const lines = cardLines(gpu, context.at, height - 1)
  const room = hasGraph ? FIGURES_WIDTH : width - 2
  lines.forEach((line, index) => {
    drawLine(painter, line, x + 2, y + 1 + index, room, gpu.view.live)
  })
  if (hasGraph) drawGraphs(painter, gpu, { x: x + 2 + FIGURES_WIDTH, y: y + 1, width: graphWidth, height: height - 1 })
}

function header(painter: Painter, gpu: GpuData, { x, y, width }: Rect, { now, isSelected }: CardContext): void {
  const { info, sample, live, ageMs } = gpu.view
  const mark = info.provenance === 'simulated' && !/simulated/i.test(info.name ?? '') ? 'SIMULATED' : ''
  const name = `${info.label} ${printable(shortModel(info))}`
  const taken = painter.rule(
    x,
    y,
    width,
    [
      { text: name, style: TONE.title | BOLD },
      { text: mark, style: TONE.simulated },
      { text: info.mig?.profile ?? '', style: TONE.muted },
    ],
    isSelected,
  )
  if (!sample) return
  const right: Span[] = live
    ? [
        ...clockReasons(sample.clockEventReasons).map((reason) => ({ text: reason.short, style: styleOf(reason.tone) })),
        { text: clocks(sample, info), style: TONE.muted },
        { text: `fan ${formatPercent(sample.fanRatio)}`, style: TONE.muted },
        { text: sample.performanceState === null ? '' : `P${sample.performanceState}`, style: TONE.muted },
      ]
    : [{ text: `last sample ${formatAge(ageMs ?? 0)} ago (${formatClock(sample.at, now)})`, style: TONE.warning }]
  if (sample.state !== 'ok' && (live || sample.state === 'no_driver')) return
  const begin = painter.spansRight(x + width - 2, y, width - taken - 5, right)
  painter.grid.put(begin - 1, y, ' ', TONE.text)
  painter.grid.put(x + width - 2, y, ' ', TONE.text)
}

function clocks(sample: GpuSample, info: GpuInfo): string {
  const clock = sample.smClockHertz ?? sample.graphicsClockHertz
  const most = info.smClockMaxHertz
  const now = clock === null ? NOT_AVAILABLE : String(Math.round(clock / 1e6))
  return most === null ? formatMegahertz(clock) : `${now}/${formatMegahertz(most)}`
}

type Line = { readonly spans: readonly Span[]; readonly bar?: Bar; readonly indent?: number }
interface Bar {
  readonly ratio: Reading
  readonly style: number
  readonly reserved: number
  readonly forecast: number
}

const BAR_WIDTH = 12
const LABEL_WIDTH = 10

/** As many as there is room for; where there is little, activity and links share a line. */
function cardLines(gpu: GpuData, at: number, room: number): Line[] {
  const { info } = gpu.view
  const sample = gpu.view.sample as GpuSample
  const total = sample.memoryTotalBytes ?? info.memoryTotalBytes
  const used = sample.memoryUsedBytes
  const share = used === null || !total ? null : used / total
  const reserved = sample.memoryReservedBytes === null || !total ? 0 : sample.memoryReservedBytes / total
  const cap = powerCap(info)
  const limit = info.temperatureSlowdownCelsius ?? info.temperatureMaxCelsius
  const lines: Line[] = [
    {
      bar: { ratio: sample.utilizationRatio, style: TONE.busy, reserved: 0, forecast: 0 },
      spans: [
        { text: `util ${padStart(formatPercent(sample.utilizationRatio), 4)}` },
        {
          text: `${whole(sample.temperatureCelsius)}${limit === null ? '' : `/${Math.round(limit)}`} °C`,
          style: styleOf(temperatureTone(sample.temperatureCelsius, info)),
        },
        {
          text: `${whole(sample.powerWatts)}${cap === null ? '' : `/${Math.round(cap)}`} W`,
          style: styleOf(powerTone(sample.powerWatts, info)),
        },
      ],
    },
    {
      bar: { ratio: share, style: memoryStyle(share), reserved, forecast: forecastRatio(gpu, share) },
      spans: [
        { text: `mem  ${padStart(formatPercent(share), 4)}` },
        { text: formatUsed(used, total) },
        { text: info.unifiedMemory ? 'host' : '', style: TONE.muted },
        forecastSpan(gpu, at),
      ],
    },
    { spans: room < CARD_ROWS ? [...activity(sample), ...links(sample, info)] : activity(sample) },
    { spans: linksLine(sample, info) },
    {
      spans: [
        { text: `mem clock ${formatMegahertz(sample.memoryClockHertz)}`, style: TONE.muted },
        {
          text: junctionWords(sample, info),
          style: styleOf(heatTone(sample.junctionTemperatureCelsius, info.junctionTemperatureMaxCelsius)),
        },
        { text: `mem temp ${formatWhole(sample.memoryTemperatureCelsius, '°C')}`, style: TONE.muted },
        { text: `mem busy ${formatPercent(sample.memoryUtilizationRatio)}`, style: TONE.muted },
      ],
    },
  ]
  const errors: Line = {
    spans: [
      ...memoryErrors(sample),
      { text: computeModeWords(info.computeMode), style: TONE.accent },
      { text: info.pciBusId === null ? '' : `bus ${printable(info.pciBusId)}`, style: TONE.faint },
    ],
  }
  const hasErrors = [sample.eccUncorrectedVolatileCount, sample.remapFailure, sample.remapPending].some((count) => (count ?? 0) > 0)
  if (hasErrors) lines.splice(2, 0, errors)
  for (const { name, bytes, explanation } of gpu.ledger ?? [])
    lines.push({
      spans: [{ text: `${padEnd(ledgerLabel(name), 22)} ${padStart(shortBytes(bytes), 6)}` }, { text: explanation, style: TONE.muted }],
    })
  // With no errors it is what people look for last.
  if (!hasErrors) lines.push(errors)
  return lines.slice(0, room)
}

/** What will be added within the next ten minutes if it goes on. */
function junctionWords({ junctionTemperatureCelsius: celsius }: GpuSample, info: GpuInfo): string {
  const limit = info.junctionTemperatureMaxCelsius
  return celsius === null ? '' : `hottest ${whole(celsius)}${limit === null ? '' : `/${Math.round(limit)}`} °C`
}

function forecastRatio({ forecast }: GpuData, share: Reading): number {
  const perSecond = forecast?.evidence.bytesPerSecond
  const capacity = forecast?.evidence.capacityBytes
  if (share === null || typeof perSecond !== 'number' || typeof capacity !== 'number' || capacity <= 0) return 0
  return Math.max(0, Math.min(1 - share, (perSecond * 600) / capacity))
}

export function forecastSpan({ forecast }: GpuData, at: number): Span {
  if (forecast?.predictedAt == null) return { text: '' }
  const left = forecast.predictedAt - at
  return { text: left <= 0 ? 'full any moment' : `full in ${formatAge(left)}`, style: severityTone(forecast.severity) | BOLD }
}

function drawLine(painter: Painter, line: Line, x: number, y: number, room: number, live: boolean): void {
  const [label, ...rest] = line.spans.map((span) => (live ? span : { ...span, style: TONE.faint }))
  if (!line.bar) {
    painter.spans(x, y, room, label ? [label, ...rest] : rest, ' ')
    return
  }
  if (label) painter.spans(x, y, room, [label])
  const { ratio, style, reserved, forecast } = line.bar
  const width = Math.min(BAR_WIDTH, Math.max(0, room - LABEL_WIDTH - 16))
  painter.bar(x + LABEL_WIDTH, y, width, ratio, live ? style : TONE.faint, reserved, forecast)
  painter.spans(x + LABEL_WIDTH + width + 1, y, room - LABEL_WIDTH - width - 1, rest)
}

function drawGraphs(painter: Painter, gpu: GpuData, { x, y, width, height }: Rect): void {
  const isTwo = width >= TWO_GRAPHS
  const each = isTwo ? Math.floor((width - 2) / 2) : width
  const draw = (values: ArrayLike<number>, left: number, style: number): void => {
    graphRows(values, each, height, painter.ascii, gpu.phase).forEach((row, index) => {
      painter.grid.put(left, y + index, row, gpu.view.live ? style : TONE.faint, each)
    })
  }
  const newest = gpu.view.sample?.at ?? 0
  const mark = (left: number): void => {
    for (const at of gpu.deaths) {
      const column = columnOf(at, newest, gpu.stepMs, each, gpu.phase)
      if (column !== null) painter.grid.put(left + column, y, painter.ascii ? 'x' : '✗', TONE.critical | BOLD, 1)
    }
  }
  draw(gpu.utilization, x, TONE.busy)
  mark(x)
  if (!isTwo) return
  draw(gpu.memory, x + each + 2, TONE.memory)
  mark(x + each + 2)
}

function whole(value: Reading): string {
  return value === null ? NOT_AVAILABLE : String(Math.round(value))
}
