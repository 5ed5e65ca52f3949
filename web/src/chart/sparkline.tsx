import { effect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { GpuCell } from '../live/gpu-cell.ts'
import { colors } from './colors.ts'
import { seriesColor, translucent } from './palette.ts'

const HOLE_MS = 15_000

/** The last five minutes of a GPU at a glance: utilization as an area, memory as a line. A gap is a gap. */
export function Sparkline({ cell }: { readonly cell: GpuCell }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => (canvas.current ? follow(canvas.current, cell) : undefined), [cell])
  return <canvas ref={canvas} class="sparkline" role="img" aria-label="Utilization and memory of the last five minutes" />
}

/** Draws only what is visible, and only when it moves by a pixel: with 64 GPUs it would be the most expensive part of the page. */
function follow(canvas: HTMLCanvasElement, cell: GpuCell): () => void {
  let isSeen = false
  let drawn: { readonly at: number; readonly points: number } | null = null
  const paint = () => {
    const palette = colors.peek()
    const points = cell.recent.points()
    drawn = { at: points.at(-1)?.at ?? 0, points: points.length }
    draw(canvas, cell, seriesColor(palette, 0), seriesColor(palette, 1))
  }
  const isDue = () => {
    const points = cell.recent.points()
    const newest = points.at(-1)?.at ?? 0
    const pixelMs = (cell.recent.spanMs / Math.max(1, canvas.width)) * (devicePixelRatio || 1)
    // Many at once: the history has come.
    return drawn === null || newest < drawn.at || newest - drawn.at >= pixelMs || Math.abs(points.length - drawn.points) > 3
  }
  const observer = new IntersectionObserver(([entry]) => {
    isSeen = entry?.isIntersecting ?? false
    if (isSeen) paint()
  })
  observer.observe(canvas)
  const size = new ResizeObserver(() => isSeen && paint())
  size.observe(canvas)
  let palette = colors.peek()
  const stop = effect(() => {
    cell.recentVersion.value
    const isRepainted = colors.value !== palette
    palette = colors.value
    if (isSeen && (isRepainted || isDue())) paint()
  })
  return () => {
    stop()
    observer.disconnect()
    size.disconnect()
  }
}

function draw(canvas: HTMLCanvasElement, cell: GpuCell, utilization: string, memory: string): void {
  const scale = devicePixelRatio || 1
  const width = Math.round(canvas.clientWidth * scale)
  const height = Math.round(canvas.clientHeight * scale)
  if (width === 0 || height === 0) return
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
  const context = canvas.getContext('2d')
  if (!context) return
  context.clearRect(0, 0, width, height)
  const points = cell.recent.points()
  const end = points.at(-1)?.at ?? 0
  const x = (at: number) => width - ((end - at) / cell.recent.spanMs) * width
  const y = (ratio: number) => height - 1 - Math.min(1, ratio) * (height - 2)
  context.lineWidth = scale
  for (const kind of ['utilization', 'memory'] as const) {
    let previous: { at: number; x: number } | null = null
    let begin = 0
    const line = new Path2D()
    const area = new Path2D()
    const close = () => {
      if (!previous) return
      area.lineTo(previous.x, height)
      area.lineTo(begin, height)
      area.closePath()
    }
    for (const point of points) {
      const value = point[kind]
      if (value === null || (previous && point.at - previous.at > HOLE_MS)) {
        close()
        previous = null
      }
      if (value === null) continue
      const to = { at: point.at, x: x(point.at) }
      if (previous) {
        line.lineTo(to.x, y(value))
        area.lineTo(to.x, y(value))
      } else {
        begin = to.x
        line.moveTo(to.x, y(value))
        area.moveTo(to.x, y(value))
      }
      previous = to
    }
    close()
    context.strokeStyle = kind === 'utilization' ? utilization : memory
    if (kind === 'utilization') {
      context.fillStyle = translucent(utilization, 0.18)
      context.fill(area)
    }
    context.stroke(line)
  }
}
