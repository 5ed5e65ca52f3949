/** A time-series chart as an SVG document: the same text for the same numbers, without scripts or style sheets. */
import { type Layout, LEGEND_GAP, LEGEND_SWATCH, layOut } from './layout.ts'
import { seriesColor } from './palette.ts'
import { areaPath, bandPath, isDrawable, linePath, stretches } from './paths.ts'
import type { ChartSpec } from './spec.ts'
import { coordinate, escapeXml, FONT_FAMILY, fitText, lineElement, rectElement, textElement, textWidth } from './svg.ts'
import { dateOf } from './time-axis.ts'

export type { ChartForecast, ChartLimit, ChartMark, ChartSeries, ChartSpec } from './spec.ts'

export function renderChart(spec: ChartSpec): string {
  const layout = layOut(spec)
  const { left, right, top, bottom, palette } = layout
  const clip = `clip-${coordinate(left)}-${coordinate(top)}-${spec.width}-${spec.height}`.replaceAll('.', '_')
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${spec.width}" height="${spec.height}" viewBox="0 0 ${spec.width} ${spec.height}" font-family="${escapeXml(FONT_FAMILY)}" role="img">`,
    `<title>${escapeXml(spec.title)}</title>`,
    `<defs><clipPath id="${clip}"><rect x="${coordinate(left)}" y="${coordinate(top - 1)}" width="${coordinate(right - left)}" height="${coordinate(bottom - top + 2)}"/></clipPath></defs>`,
    rectElement(0, 0, spec.width, spec.height, palette.background),
    ...heading(spec, layout),
    ...axes(layout),
    `<g clip-path="url(#${clip})">`,
    ...(spec.stacked === true ? layers(spec, layout) : lines(spec, layout)),
    ...fan(spec, layout),
    '</g>',
    ...limits(spec, layout),
    ...marks(spec, layout),
    ...nothing(spec, layout),
    '</svg>',
    '',
  ].join('\n')
}

function heading(spec: ChartSpec, { palette, fontSize, left, right, from, to, xTicks, legendRows, top }: Layout): string[] {
  const out: string[] = []
  const size = fontSize + 2
  if (spec.title !== '') {
    const days = spec.xKind === 'number' ? '' : dateOf(from, spec.timeZone)
    const last = spec.xKind === 'number' ? '' : dateOf(to, spec.timeZone)
    const showsDate = days !== '' && xTicks.every((tick) => tick.label.includes(':'))
    const date = showsDate ? (days === last ? days : `${days} – ${last}`) : ''
    const dateWidth = date === '' ? 0 : textWidth(date, fontSize) + 12
    out.push(textElement(12, size + 6, fitText(spec.title, size, right - 12 - dateWidth), { size, color: palette.text, bold: true }))
    if (date !== '') out.push(textElement(right, size + 6, date, { size: fontSize, color: palette.faintText, anchor: 'end' }))
  }
  legendRows.forEach((row, index) => {
    const y = top - (legendRows.length - index) * (fontSize + 6) + fontSize - 2
    let x = Math.min(left, 12)
    for (const entry of row) {
      const dash = entry.dashed ? ' stroke-dasharray="4 3"' : ''
      out.push(lineElement(x, y - fontSize / 3, x + 13, y - fontSize / 3, entry.color, ` stroke-width="3"${dash}`))
      out.push(
        textElement(x + LEGEND_SWATCH, y, fitText(entry.name, fontSize, right - x - LEGEND_SWATCH), {
          size: fontSize,
          color: palette.faintText,
        }),
      )
      x += LEGEND_SWATCH + textWidth(entry.name, fontSize) + LEGEND_GAP
    }
  })
  return out
}

function axes({ palette, fontSize, left, right, bottom, x, y, valueAxis, xTicks }: Layout): string[] {
  const out: string[] = []
  for (const tick of valueAxis.ticks) {
    out.push(lineElement(left, y(tick.value), right, y(tick.value), palette.grid))
    out.push(
      textElement(left - 6, y(tick.value) + fontSize * 0.35, tick.label, { size: fontSize, color: palette.faintText, anchor: 'end' }),
    )
  }
  out.push(lineElement(left, bottom, right, bottom, palette.axis))
  for (const tick of xTicks) {
    out.push(lineElement(x(tick.value), bottom, x(tick.value), bottom + 4, palette.axis))
    const half = textWidth(tick.label, fontSize) / 2
    const middle = Math.min(Math.max(x(tick.value), half + 2), right + 12 - half)
    out.push(textElement(middle, bottom + fontSize + 5, tick.label, { size: fontSize, color: palette.faintText, anchor: 'middle' }))
  }
  return out
}

function lines(spec: ChartSpec, { palette, x, y, bottom, columns }: Layout): string[] {
  return spec.series.flatMap((series, index) => {
    const color = series.color ?? seriesColor(palette, index)
    const parts = stretches(spec.at, columns[index] ?? [], x, y)
    const band = series.min && series.max ? bandPath(spec.at, series.min, series.max, x, y) : ''
    return [
      ...(band === '' ? [] : [`<path d="${band}" fill="${color}" fill-opacity="0.22"/>`]),
      ...(series.fill === true ? [`<path d="${areaPath(parts, bottom)}" fill="${color}" fill-opacity="0.14"/>`] : []),
      `<path d="${linePath(parts)}" fill="none" stroke="${color}" stroke-width="1.75" stroke-linejoin="round" stroke-linecap="round"/>`,
    ]
  })
}

function layers(spec: ChartSpec, { palette, x, y, columns }: Layout): string[] {
  return columns.flatMap((column, index) => {
    const color = spec.series[index]?.color ?? seriesColor(palette, index)
    const below = columns[index - 1] ?? column.map((value) => (value === null ? null : 0))
    const top = linePath(stretches(spec.at, column, x, y))
    return [
      `<path d="${bandPath(spec.at, below, column, x, y)}" fill="${color}" fill-opacity="0.72"/>`,
      `<path d="${top}" fill="none" stroke="${palette.background}" stroke-width="0.75"/>`,
    ]
  })
}

function fan(spec: ChartSpec, { palette, x, y }: Layout): string[] {
  const forecast = spec.forecast
  if (!forecast) return []
  const color = seriesColor(palette, 0)
  return [
    `<path d="${bandPath(forecast.at, forecast.low, forecast.high, x, y)}" fill="${color}" fill-opacity="0.16"/>`,
    `<path d="${linePath(stretches(forecast.at, forecast.values, x, y))}" fill="none" stroke="${color}" stroke-width="1.75" stroke-dasharray="5 4"/>`,
  ]
}

/** The label is at the right end, or at the left where a mark has its label there. */
function limits(spec: ChartSpec, { palette, fontSize, left, right, top, x, y, valueAxis }: Layout): string[] {
  const isTaken = (spec.marks ?? []).some((mark) => x(mark.at) > left + (right - left) * 0.6)
  return (spec.limits ?? []).flatMap((limit) => {
    if (!Number.isFinite(limit.value) || limit.value < valueAxis.from || limit.value > valueAxis.to) return []
    const height = y(limit.value)
    const baseline = height - fontSize - 2 < top ? height + fontSize + 1 : height - 4
    const style = { size: fontSize, color: palette.limit, anchor: isTaken ? 'start' : 'end' } as const
    const label = textElement(isTaken ? left + 4 : right - 4, baseline, fitText(limit.label, fontSize, right - left - 8), style)
    return [
      lineElement(left, height, right, height, palette.limit, ' stroke-width="1.25" stroke-dasharray="6 3"'),
      halo(label, palette.background),
    ]
  })
}

/** Labels move down where they would overlap; past three rows they are left out. */
function marks(spec: ChartSpec, { palette, fontSize, right, top, bottom, x, from, to }: Layout): string[] {
  const rowEnds = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  const shown = (spec.marks ?? []).filter((mark) => mark.at >= from && mark.at <= to).sort((a, b) => a.at - b.at)
  const rules: string[] = []
  const labels: string[] = []
  for (const mark of shown) {
    const color = mark.severity === 'critical' ? palette.limit : palette.mark
    const place = x(mark.at)
    rules.push(lineElement(place, top, place, bottom, color, ' stroke-width="1.25" stroke-dasharray="2 2"'))
    rules.push(`<path d="M${coordinate(place - 4)},${coordinate(top - 1)}h8l-4,6z" fill="${color}"/>`)
    const label = fitText(mark.label, fontSize, 180)
    const width = textWidth(label, fontSize)
    const isLeft = place + 7 + width > right
    const start = isLeft ? place - 7 - width : place + 7
    const row = rowEnds.findIndex((end) => end < start)
    const baseline = top + 1 + (row + 1) * (fontSize + 3)
    if (label === '' || row === -1 || baseline > bottom) continue
    rowEnds[row] = start + width + 4
    const text = textElement(isLeft ? place - 7 : place + 7, baseline, label, { size: fontSize, color, anchor: isLeft ? 'end' : 'start' })
    labels.push(halo(text, palette.background))
  }
  return [...rules, ...labels]
}

/** An edge in the background color, so that a label stays readable on a line. */
function halo(text: string, background: string): string {
  return `${text.replace('<text ', `<text stroke="${background}" stroke-width="3" stroke-linejoin="round" `)}\n${text}`
}

function nothing(spec: ChartSpec, { palette, fontSize, left, right, top, bottom, columns }: Layout): string[] {
  if (columns.some((column) => column.some(isDrawable))) return []
  const style = { size: fontSize, color: palette.faintText, anchor: 'middle' } as const
  return [textElement((left + right) / 2, (top + bottom) / 2, spec.at.length === 0 ? 'no samples' : 'no readings', style)]
}
