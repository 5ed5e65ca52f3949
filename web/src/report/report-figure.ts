import { KEYS_TEXT, onChartKey } from '../chart/keys.ts'
import { type MountedChart, mountChart, USUAL_HEIGHT_PX } from '../chart/mount.ts'
import { chartData, writeLegend } from '../chart/options.ts'
import { type ChartColors, seriesClass } from '../chart/palette.ts'
import type { ChartSeries, TimeChartProps } from '../chart/time-chart.tsx'
import { showTooltip } from '../chart/tooltip-place.ts'
import { tooltipLines } from './tooltip.ts'

const WHEEL_FACTOR = 1.25

export class ReportFigure {
  readonly #all: readonly ChartSeries[]
  readonly #hidden = new Set<ChartSeries>()
  readonly #box = element('div', 'chart-box')
  readonly #legend = { current: element('div', 'chart-legend') }
  readonly #tip: HTMLElement
  #props: TimeChartProps
  #palette: ChartColors
  #mounted: MountedChart | null = null

  constructor(place: HTMLElement, props: TimeChartProps, palette: ChartColors, tip: HTMLElement) {
    this.#all = props.series
    this.#props = props
    this.#palette = palette
    this.#tip = tip
    const figure = element('figure', 'chart')
    const caption = element('figcaption', 'chart-head')
    const moment = element('span', 'legend-moment')
    moment.dataset.moment = ''
    caption.append(element('h3', 'chart-title', props.title))
    this.#box.role = 'img'
    this.#box.tabIndex = 0
    this.#box.ariaLabel = `${props.title}. ${KEYS_TEXT}`
    this.#box.style.height = `${USUAL_HEIGHT_PX}px`
    this.#box.addEventListener('keydown', (event) => this.#mounted && onChartKey(event, this.#mounted.plot, this.#props))
    this.#legend.current.append(...this.#all.map((one) => this.#legendItem(one)), moment)
    figure.append(caption, this.#legend.current, this.#box)
    place.append(figure)
  }

  show(from: number, to: number): void {
    this.#props = { ...this.#props, from, to }
    this.#mounted?.update(chartData(this.#props))
  }

  repaint(palette: ChartColors): void {
    this.#palette = palette
    if (this.#mounted) this.draw()
  }

  /** Only the title and the legend stay. */
  clear(): void {
    this.#mounted?.remove()
    this.#mounted = null
  }

  draw(): void {
    this.clear()
    this.#props = { ...this.#props, series: this.#all.filter((one) => !this.#hidden.has(one)) }
    this.#mounted = mountChart({
      box: this.#box,
      current: () => this.#props,
      data: chartData(this.#props),
      palette: this.#palette,
      height: USUAL_HEIGHT_PX,
      legend: this.#legend,
    })
    const { plot } = this.#mounted
    writeLegend(plot, this.#props, this.#legend.current)
    plot.over.addEventListener('mousemove', (event) => {
      showTooltip(this.#tip, tooltipLines(this.#props, plot.posToIdx(event.offsetX), plot.posToVal(event.offsetX, 'x')), event)
    })
    plot.over.addEventListener('mouseleave', () => {
      this.#tip.hidden = true
    })
    plot.over.addEventListener('wheel', (event) => this.#zoomAt(event, plot.posToVal(event.offsetX, 'x')), { passive: false })
  }

  #legendItem(one: ChartSeries): HTMLElement {
    const label = element('label', 'legend-item')
    const box = element('input')
    const figure = element('b')
    box.type = 'checkbox'
    box.checked = true
    figure.dataset.value = ''
    box.addEventListener('change', () => {
      if (box.checked) this.#hidden.delete(one)
      else this.#hidden.add(one)
      // The figures of the lines that are shown, in their order.
      figure.toggleAttribute('data-value', box.checked)
      figure.textContent = ''
      this.draw()
    })
    label.append(box, element('i', `swatch ${seriesClass(one.color ?? 0)}`), element('span', '', one.label), figure)
    return label
  }

  /** With Ctrl: what is under the pointer stays there. */
  #zoomAt(event: WheelEvent, at: number): void {
    if (!event.ctrlKey) return
    event.preventDefault()
    const factor = event.deltaY > 0 ? WHEEL_FACTOR : 1 / WHEEL_FACTOR
    this.#props.onZoom?.(at - (at - this.#props.from) * factor, at + (this.#props.to - at) * factor)
  }
}

function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, name = '', text = ''): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag)
  if (name !== '') made.className = name
  made.textContent = text
  return made
}
