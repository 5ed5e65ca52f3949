/** What the pointer and the keyboard do on the canvas of a timeline, and when it is drawn. */
import { effect, type Signal, signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Band, BandKind, DevicePicture } from '../../../src/core/memory/snapshot-picture.ts'
import { colors } from '../chart/colors.ts'
import { showTooltip } from '../chart/tooltip-place.ts'
import { formatBytes, formatShare } from '../words.ts'
import { bySize } from './band-list.tsx'
import { type CloserLook, PatientAsk } from './closer-look.ts'
import { ColumnLevels } from './column-levels.ts'
import { secondsText } from './moment-text.ts'
import { bandColors, bytesAt, drawTimeline, eventAt, plotWidth, type View } from './timeline-draw.ts'
import { panned, showing, zoomed } from './view-moves.ts'

export interface TimelineState {
  readonly picture: DevicePicture
  readonly kind: Signal<BandKind>
  readonly pinned: Signal<number | null>
  readonly view: Signal<View>
  readonly moment: Signal<number>
}

const WHEEL_FACTOR = 1.25
const KEY_STEPS = 200
/** Less is a click. */
const DRAG_PX = 4
/** Reserved memory that lies far above what is in use would press it to the ground. */
const MOST_ABOVE = 1.6
const HEADROOM = 1.05
const TIP_FRAMES = 4

export function useTimelineCanvas(
  canvas: RefObject<HTMLCanvasElement | null>,
  tip: RefObject<HTMLDivElement | null>,
  state: TimelineState,
  closer: CloserLook | null,
): void {
  useEffect(() => (canvas.current && tip.current ? new TimelineCanvas(canvas.current, tip.current, state, closer).start() : undefined), [])
}

class TimelineCanvas {
  readonly #canvas: HTMLCanvasElement
  readonly #tip: HTMLElement
  readonly #state: TimelineState
  readonly #closer: CloserLook | null
  readonly #whole: Readonly<Record<BandKind, ColumnLevels>>
  readonly #fine: Signal<{ readonly kind: BandKind; readonly levels: ColumnLevels } | null> = signal(null)
  readonly #ask = new PatientAsk()
  readonly #topBytes: number
  readonly #stop = new AbortController()
  #drag: { readonly x: number; readonly view: View; isMoving: boolean } | null = null
  #frame = 0

  constructor(canvas: HTMLCanvasElement, tip: HTMLElement, state: TimelineState, closer: CloserLook | null) {
    this.#canvas = canvas
    this.#tip = tip
    this.#state = state
    this.#closer = closer
    const { line, category } = state.picture.bands
    this.#whole = { line: new ColumnLevels(line.columns), category: new ColumnLevels(category.columns) }
    const { mostBytes, mostReserved } = this.#whole.line
    this.#topBytes = Math.max(1, Math.max(mostBytes, Math.min(mostReserved, mostBytes * MOST_ABOVE)) * HEADROOM)
  }

  /** Returns what ends it. */
  start(): () => void {
    const { kind, pinned, view, moment } = this.#state
    const listen = { signal: this.#stop.signal }
    const box = this.#canvas.parentElement ?? this.#canvas
    this.#canvas.addEventListener('pointerdown', (event) => this.#press(event), listen)
    this.#canvas.addEventListener('pointermove', (event) => this.#move(event), listen)
    this.#canvas.addEventListener('pointerup', (event) => this.#release(event), listen)
    this.#canvas.addEventListener('pointercancel', () => this.#leave(), listen)
    this.#canvas.addEventListener('pointerleave', () => this.#leave(), listen)
    this.#canvas.addEventListener('wheel', (event) => this.#wheel(event), { ...listen, passive: false })
    this.#canvas.addEventListener('dblclick', () => this.#showAll(), listen)
    box.addEventListener('keydown', (event) => this.#key(event), listen)
    const size = new ResizeObserver(() => this.#draw())
    size.observe(this.#canvas)
    const stopDrawing = effect(() => {
      // Read here, so that a change of any of them is drawn.
      void [kind.value, pinned.value, view.value, moment.value, colors.value, this.#fine.value]
      this.#draw()
    })
    const stopAsking = effect(() => this.#lookCloser(kind.value, view.value))
    return () => {
      this.#stop.abort()
      size.disconnect()
      stopDrawing()
      stopAsking()
      this.#ask.cancel()
      cancelAnimationFrame(this.#frame)
    }
  }

  get #bands(): readonly Band[] {
    return this.#state.picture.bands[this.#state.kind.peek()].bands
  }

  /** The finest that covers what is shown. */
  #levels(): ColumnLevels {
    const [fine, { from, to }, kind] = [this.#fine.peek(), this.#state.view.peek(), this.#state.kind.peek()]
    const whole = this.#whole[kind]
    if (fine?.kind !== kind || fine.levels.from > from || fine.levels.to < to) return whole
    return fine.levels.eventsPerColumn < whole.eventsPerColumn ? fine.levels : whole
  }

  #draw(): void {
    cancelAnimationFrame(this.#frame)
    this.#frame = requestAnimationFrame(() => {
      const { view, pinned, moment, picture } = this.#state
      const levels = this.#levels()
      drawTimeline(this.#canvas, {
        levels,
        view: view.peek(),
        topBytes: this.#topBytes,
        palette: colors.peek(),
        colors: bandColors(colors.peek(), this.#bands),
        pinned: pinned.peek(),
        moment: moment.peek(),
        marks: picture.marks,
        labelAt: (event) => this.#label(levels, event),
      })
    })
  }

  #label(levels: ColumnLevels, event: number): string {
    const time = levels.timesUs?.[levels.columnOf(event)]
    return time === undefined ? `#${event}` : secondsText(time)
  }

  #lookCloser(kind: BandKind, { from, to }: View): void {
    const { events } = this.#state.picture
    const pixels = plotWidth(this.#canvas.clientWidth || 1000)
    const span = to - from
    this.#ask.cancel()
    if (this.#closer === null || span >= events || this.#whole[kind].eventsPerColumn <= Math.max(1, span / pixels)) return
    const known = this.#fine.peek()
    const isKnown = known?.kind === kind && known.levels.from <= from && known.levels.to >= to
    if (isKnown && known.levels.eventsPerColumn <= Math.max(1, span / pixels)) return
    // As much again on each side, so that a step to the side finds it there.
    const [begin, end] = [Math.max(0, Math.floor(from - span)), Math.min(events, Math.ceil(to + span))]
    const { columns } = this.#closer
    this.#ask.ask(
      (stopped) => columns(kind, begin, end, Math.min(4096, pixels * 3), stopped),
      (answer) => {
        this.#fine.value = { kind, levels: new ColumnLevels(answer) }
      },
    )
  }

  #under(event: MouseEvent): { readonly column: number; readonly band: number } {
    const box = this.#canvas.getBoundingClientRect()
    const [x, y] = [event.clientX - box.left, event.clientY - box.top]
    const levels = this.#levels()
    const pixels = plotWidth(box.width)
    const { from, to } = this.#state.view.peek()
    const pixel = Math.min(pixels - 1, Math.max(0, Math.floor(((eventAt(x, box.width, { from, to }) - from) / (to - from)) * pixels)))
    const column = levels.pixelColumns(from, to, pixels)[pixel] as number
    return { column, band: column < 0 ? -1 : levels.bandAt(column, bytesAt(y, box.height, this.#topBytes)) }
  }

  #press(event: PointerEvent): void {
    if (event.button !== 0) return
    this.#canvas.setPointerCapture(event.pointerId)
    this.#drag = { x: event.clientX, view: this.#state.view.peek(), isMoving: false }
  }

  #move(event: PointerEvent): void {
    const drag = this.#drag
    if (drag && (drag.isMoving || Math.abs(event.clientX - drag.x) > DRAG_PX)) {
      drag.isMoving = true
      this.#tip.hidden = true
      const { from, to } = drag.view
      const perPixel = (to - from) / plotWidth(this.#canvas.clientWidth)
      this.#state.view.value = panned(drag.view, (drag.x - event.clientX) * perPixel, this.#state.picture.events)
      return
    }
    const { column, band } = this.#under(event)
    if (column < 0) this.#tip.hidden = true
    else showTooltip(this.#tip, this.#tipLines(column, band), event)
  }

  #release(event: PointerEvent): void {
    const drag = this.#drag
    this.#drag = null
    if (!drag || drag.isMoving) return
    const { column, band } = this.#under(event)
    if (column < 0) return
    this.#state.moment.value = this.#levels().highestAt[column] as number
    this.#state.pinned.value = band < 0 || this.#state.pinned.peek() === band ? null : band
  }

  #leave(): void {
    this.#tip.hidden = true
  }

  #tipLines(column: number, band: number): string[] {
    const levels = this.#levels()
    const [total, at] = [levels.totals[column] as number, levels.highestAt[column] as number]
    const time = levels.timesUs?.[column]
    const when = `event ${at.toLocaleString('en-US')}${time === undefined ? '' : `, ${secondsText(time)}`}`
    const lines = [`${formatBytes(total)} in use, ${formatBytes(levels.reserved[column] as number)} reserved`, when]
    const one = this.#bands[band]
    if (!one) return lines
    const bytes = levels.bands[band]?.[column] ?? 0
    const [stack] = one.stacks
    const frames = (stack?.frames ?? []).slice(-TIP_FRAMES).map((frame) => `  ${frame}`)
    return [`${one.name}  ${formatBytes(bytes)}  (${formatShare(bytes, total)})`, ...frames, ...lines]
  }

  #wheel(event: WheelEvent): void {
    const { view, picture } = this.#state
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey
    if (!event.ctrlKey && !isSideways) return
    event.preventDefault()
    const { from, to } = view.peek()
    if (!event.ctrlKey) {
      const perPixel = (to - from) / plotWidth(this.#canvas.clientWidth)
      view.value = panned({ from, to }, (event.deltaX || event.deltaY) * perPixel, picture.events)
      return
    }
    const around = eventAt(event.offsetX, this.#canvas.clientWidth, { from, to })
    view.value = zoomed({ from, to }, event.deltaY > 0 ? WHEEL_FACTOR : 1 / WHEEL_FACTOR, around, picture.events)
  }

  #showAll(): void {
    this.#state.view.value = { from: 0, to: this.#state.picture.events }
  }

  #key(event: KeyboardEvent): void {
    const { view, moment, pinned, picture } = this.#state
    const { from, to } = view.peek()
    const span = to - from
    const zoom = (factor: number) => {
      const center = moment.peek() >= from && moment.peek() < to ? moment.peek() : (from + to) / 2
      view.value = zoomed({ from, to }, factor, center, picture.events)
    }
    const go = (index: number) => {
      moment.value = Math.min(picture.events - 1, Math.max(0, Math.round(index)))
      view.value = showing(view.peek(), moment.peek(), picture.events)
    }
    const sign = event.key === 'ArrowLeft' ? -1 : 1
    switch (event.key) {
      case 'ArrowLeft':
      case 'ArrowRight':
        if (event.shiftKey) view.value = panned({ from, to }, (sign * span) / 10, picture.events)
        else go(moment.peek() + sign * (event.ctrlKey ? 1 : Math.max(1, span / KEY_STEPS)))
        break
      case 'ArrowUp':
      case 'ArrowDown': {
        const shown = bySize(this.#bands).map(({ band }) => band)
        const at = pinned.peek() === null ? -1 : shown.indexOf(pinned.peek() as number)
        const next = at + (event.key === 'ArrowDown' ? 1 : -1)
        pinned.value = shown[next < 0 ? shown.length - 1 : next % shown.length] ?? null
        break
      }
      case 'Home':
        go(0)
        break
      case 'End':
        go(picture.events - 1)
        break
      case '+':
      case '=':
        zoom(0.5)
        break
      case '-':
        zoom(2)
        break
      case 'Escape':
        this.#showAll()
        pinned.value = null
        break
      default:
        return
    }
    event.preventDefault()
  }
}
