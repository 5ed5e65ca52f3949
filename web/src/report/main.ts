/** The script inside a report: draws its charts, which share one crosshair and one time range, in the reader's time zone. */
import '../style/tokens.css'
import '../style/base.css'
import '../style/chart.css'
import './report.css'
import type { ReportPageData } from '../../../src/core/report-page.ts'
import { timeText } from '../../../src/core/time-span.ts'
import { readColors } from '../chart/palette.ts'
import { chartProps } from './chart-props.ts'
import { showLocalTimes } from './local-times.ts'
import { ReportFigure } from './report-figure.ts'
import { toggleTheme } from './theme.ts'

/** Less than this is a click, not a time range. */
const SHORTEST_MS = 50
/** Around a finding that was clicked, on each side. */
const AROUND = 1 / 20
/** Of a page of A4 or Letter, between its margins. */
const PAPER_WIDTH = '700px'

const data = JSON.parse(byId('data').textContent) as ReportPageData
const tip = byId('tip')
const view = { from: data.from, to: data.to }
let isDue = false

/** In the next frame: all charts that share the crosshair ask for the same span, from positions in what they show at this moment. */
function zoom(from: number, to: number): void {
  if (!(to - from >= SHORTEST_MS)) return
  Object.assign(view, { from: Math.max(data.from, from), to: Math.min(data.to, to) })
  if (isDue) return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    for (const figure of figures) figure.show(view.from, view.to)
    sayZoom()
  })
}

function showAll(): void {
  zoom(data.from, data.to)
}

function sayZoom(): void {
  const isWhole = view.from <= data.from && view.to >= data.to
  byId('zoomed').textContent = isWhole ? 'drag to zoom' : `${timeText(view.from, view.to, 'local')} (double-click shows all)`
}

const places = new Map<Element, ReportFigure>()
for (const place of document.querySelectorAll<HTMLElement>('[data-chart]')) {
  const chart = data.charts[Number(place.dataset.chart)]
  const props = chart && { ...chartProps(chart, data), onZoom: zoom, onReset: showAll }
  if (props) places.set(place, new ReportFigure(place, props, readColors(), tip))
}
const figures = [...places.values()]

function repaint(): void {
  for (const figure of figures) figure.repaint(readColors())
}

function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the report has no element "${id}"`)
  return found
}

showLocalTimes(data.to)
for (const row of document.querySelectorAll<HTMLElement>('tr[data-at]'))
  row.addEventListener('click', () => {
    const at = Number(row.dataset.at)
    const half = (data.to - data.from) * AROUND
    zoom(at - half, at + half)
    document.querySelector('[data-chart]')?.scrollIntoView({ behavior: 'smooth' })
  })
byId('theme').hidden = false
byId('theme').addEventListener('click', () => {
  toggleTheme()
  repaint()
})
// With 64 GPUs all charts at once would be slow: those in sight are drawn, and all for paper.
const sight = new IntersectionObserver(
  (entries) => {
    if (matchMedia('print').matches) return
    for (const { target, isIntersecting } of entries)
      if (isIntersecting) places.get(target)?.draw()
      else places.get(target)?.clear()
  },
  { rootMargin: '400px' },
)
for (const place of places.keys()) sight.observe(place)
addEventListener('beforeprint', () => {
  document.body.style.width = PAPER_WIDTH
  for (const figure of figures) figure.draw()
})
addEventListener('afterprint', () => {
  document.body.style.width = ''
})
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint)
sayZoom()
