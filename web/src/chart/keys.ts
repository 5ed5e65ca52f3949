/** A chart by keyboard: arrows move the crosshair, plus and minus zoom, Escape resets. */
import type uPlot from 'uplot'
import type { TimeChartProps } from './time-chart.tsx'

export const KEYS_TEXT = 'Arrow keys move the crosshair, plus and minus zoom, Escape resets.'

const CURSOR_STEP_PX = 8

export function onChartKey(event: KeyboardEvent, chart: uPlot, { from, to, onZoom, onReset }: TimeChartProps): void {
  const left = chart.cursor.left ?? -1
  const x = left < 0 ? chart.over.clientWidth : left
  const center = chart.posToVal(Math.min(x, chart.over.clientWidth), 'x')
  const zoom = (factor: number) => onZoom?.(center - (center - from) * factor, center + (to - center) * factor)
  if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
    const step = (event.shiftKey ? 8 : 1) * CURSOR_STEP_PX * (event.key === 'ArrowLeft' ? -1 : 1)
    chart.setCursor({ left: Math.min(chart.over.clientWidth, Math.max(0, x + step)), top: chart.over.clientHeight / 2 }, true)
  } else if (event.key === '+') zoom(0.5)
  else if (event.key === '-') zoom(2)
  else if (event.key === 'Escape') onReset?.()
  else return
  event.preventDefault()
}
