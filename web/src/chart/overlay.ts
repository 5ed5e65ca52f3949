/** What is drawn around the lines: limits with their names, bands of time, and marks on the axis. */
import type uPlot from 'uplot'
import type { Tone } from '../words.ts'
import { type ChartColors, translucent } from './palette.ts'
import type { TimeChartProps } from './time-chart.tsx'

export function overlayPlugin(current: () => TimeChartProps, palette: ChartColors): uPlot.Plugin {
  return {
    hooks: {
      drawClear: [(chart) => drawBands(chart, current(), palette)],
      draw: [
        (chart) => {
          drawLimits(chart, current(), palette)
          drawMarks(chart, current(), palette)
        },
      ],
    },
  }
}

export function toneColor(palette: ChartColors, tone: Tone): string {
  return tone === 'critical' ? palette.critical : tone === 'warning' ? palette.warning : tone === 'muted' ? palette.faint : palette.mark
}

function drawBands(chart: uPlot, { bands = [] }: TimeChartProps, palette: ChartColors): void {
  const { ctx, bbox } = chart
  ctx.save()
  for (const { from, to, tone } of bands) {
    const left = Math.max(bbox.left, chart.valToPos(from, 'x', true))
    const right = Math.min(bbox.left + bbox.width, chart.valToPos(to, 'x', true))
    if (right <= left) continue
    ctx.fillStyle = translucent(toneColor(palette, tone), 0.14)
    ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height)
  }
  ctx.restore()
}

function drawLimits(chart: uPlot, { limits = [] }: TimeChartProps, palette: ChartColors): void {
  const { ctx, bbox } = chart
  const scale = devicePixelRatio || 1
  ctx.save()
  ctx.font = `${10 * scale}px system-ui, sans-serif`
  let previous = Number.NaN
  let isRight = false
  for (const { value, label, tone = 'critical', isFar = false } of limits) {
    const y = isFar ? bbox.top : chart.valToPos(value, 'y', true)
    if (y < bbox.top - 1 || y > bbox.top + bbox.height + 1) continue
    ctx.strokeStyle = toneColor(palette, tone)
    ctx.fillStyle = toneColor(palette, tone)
    ctx.lineWidth = scale
    ctx.setLineDash([5 * scale, 4 * scale])
    if (!isFar) {
      ctx.beginPath()
      ctx.moveTo(bbox.left, y)
      ctx.lineTo(bbox.left + bbox.width, y)
      ctx.stroke()
    }
    const isHigh = y - bbox.top < 14 * scale
    // Names of limits that are close together stand at different ends.
    isRight = !(Math.abs(y - previous) < 16 * scale && isRight)
    previous = y
    ctx.textAlign = isRight ? 'right' : 'left'
    ctx.textBaseline = isHigh ? 'top' : 'bottom'
    ctx.fillText(
      isFar ? `${label} ↑` : label,
      isRight ? bbox.left + bbox.width - 4 * scale : bbox.left + 4 * scale,
      y + (isHigh ? 3 : -2) * scale,
    )
  }
  ctx.restore()
}

function drawMarks(chart: uPlot, { marks = [] }: TimeChartProps, palette: ChartColors): void {
  const { ctx, bbox } = chart
  const scale = devicePixelRatio || 1
  ctx.save()
  for (const { at, tone } of marks) {
    const x = chart.valToPos(at, 'x', true)
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.strokeStyle = ctx.fillStyle = toneColor(palette, tone)
    ctx.lineWidth = scale
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    const half = 4 * scale
    ctx.beginPath()
    ctx.moveTo(x - half, bbox.top + bbox.height)
    ctx.lineTo(x + half, bbox.top + bbox.height)
    ctx.lineTo(x, bbox.top + bbox.height - 2 * half)
    ctx.closePath()
    ctx.fill()
  }
  ctx.restore()
}
