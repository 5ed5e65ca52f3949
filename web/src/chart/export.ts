import type uPlot from 'uplot'
import { colors } from './colors.ts'
import { csvOf } from './csv.ts'
import { seriesColor } from './palette.ts'
import type { TimeChartProps } from './time-chart.tsx'

export function saveCsv(props: TimeChartProps): void {
  save(new Blob([csvOf(props.at, props.series, props.x ?? 'time')], { type: 'text/csv;charset=utf-8' }), `${fileName(props)}.csv`)
}

const HEAD_PX = 44

/** The picture with its title and legend, on the page's own background. */
export function savePng(chart: uPlot, props: TimeChartProps): void {
  const source = chart.ctx.canvas
  const scale = devicePixelRatio || 1
  const canvas = document.createElement('canvas')
  canvas.width = source.width
  canvas.height = source.height + HEAD_PX * scale
  const context = canvas.getContext('2d')
  if (!context) return
  const palette = colors.value
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--surface').trim()
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.fillStyle = palette.text
  context.font = `600 ${14 * scale}px system-ui, sans-serif`
  context.fillText(props.title, 12 * scale, 18 * scale)
  context.font = `${11 * scale}px system-ui, sans-serif`
  let x = 12 * scale
  props.series.forEach((one, index) => {
    context.fillStyle = seriesColor(palette, one.color ?? index)
    context.fillRect(x, 28 * scale, 10 * scale, 10 * scale)
    context.fillStyle = palette.text
    context.fillText(one.label, x + 14 * scale, 37 * scale)
    x += context.measureText(one.label).width + 30 * scale
  })
  context.drawImage(source, 0, HEAD_PX * scale)
  canvas.toBlob((blob) => blob && save(blob, `${fileName(props)}.png`), 'image/png')
}

function fileName({ title, to, x }: TimeChartProps): string {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return x !== undefined && x !== 'time'
    ? `gpuwarden-${name}`
    : `gpuwarden-${name}-${new Date(to).toISOString().slice(0, 19).replace(/[:]/g, '')}`
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
