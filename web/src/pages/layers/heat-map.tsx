import { useEffect, useRef, useState } from 'preact/hooks'
import { LAYER_FIGURES, type LayerFigureName } from '../../../../src/core/layer-figures.ts'
import { readColors } from '../../chart/palette.ts'
import { formatFigure, formatPercent, NOT_AVAILABLE } from '../../words.ts'
import { shadesOf } from './shades.ts'

const ROW = 16
const LEAST_SHADE = 0.06

export interface Cell {
  readonly layer: number
  readonly look: number
}

interface HeatMapProps {
  readonly figure: LayerFigureName
  readonly layers: readonly string[]
  readonly steps: readonly number[]
  readonly data: readonly (readonly (number | null)[])[]
}

/** A row for each layer, a column for each look; arrow keys and the mouse choose a cell, whose value stands below. */
export function HeatMap({ figure, layers, steps, data }: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [cell, setCell] = useState<Cell | null>(null)
  const shades = shadesOf(figure, data)
  useEffect(() => {
    const draw = () => canvas.current && paint(canvas.current, data, shades.of, steps.length)
    draw()
    const observer = new ResizeObserver(draw)
    if (canvas.current) observer.observe(canvas.current)
    return () => observer.disconnect()
  })
  const cellAt = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect()
    if (!box) return
    const look = Math.floor(((event.clientX - box.left) / box.width) * steps.length)
    setCell(within({ layer: Math.floor((event.clientY - box.top) / ROW), look }, layers.length, steps.length))
  }
  const move = (event: KeyboardEvent) => {
    const by = MOVES[event.key]
    if (!by) return
    event.preventDefault()
    const { layer, look } = cell ?? { layer: 0, look: steps.length }
    setCell(within({ layer: layer + by[0], look: look + by[1] }, layers.length, steps.length))
  }
  const chosen = cell && within(cell, layers.length, steps.length)
  return (
    <>
      <div class="heat">
        <ol class="heat-names" aria-hidden="true">
          {layers.map((layer, index) => (
            <li key={layer} class={chosen?.layer === index ? 'chosen' : ''} title={layer}>
              {layer}
            </li>
          ))}
        </ol>
        <canvas
          ref={canvas}
          class="heat-cells"
          style={{ height: `${ROW * layers.length}px` }}
          tabIndex={0}
          aria-label={`${LAYER_FIGURES[figure].label} of ${layers.length} layers at ${steps.length} steps; arrow keys choose one`}
          onMouseMove={cellAt}
          onMouseLeave={() => setCell(null)}
          onKeyDown={move}
        />
      </div>
      <p class="heat-steps small faint">
        <span>step {steps[0] ?? 0}</span>
        <span>step {steps.at(-1) ?? 0}</span>
      </p>
      <p class="small" aria-live="polite">
        {chosen
          ? `${layers[chosen.layer]}, step ${steps[chosen.look]}: ${valueText(figure, data[chosen.layer]?.[chosen.look] ?? null)}`
          : `From ${valueText(figure, shades.least)} (pale) to ${valueText(figure, shades.most)} (dark); red: not finite.`}
      </p>
    </>
  )
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
}

export function valueText(figure: LayerFigureName, value: number | null): string {
  if (value === null) return NOT_AVAILABLE
  if (!Number.isFinite(value)) return 'not finite'
  return LAYER_FIGURES[figure].unit === 'ratio' ? formatPercent(value) : formatFigure(value)
}

function within({ layer, look }: Cell, layers: number, looks: number): Cell {
  return { layer: Math.min(layers - 1, Math.max(0, layer)), look: Math.min(looks - 1, Math.max(0, look)) }
}

function paint(
  canvas: HTMLCanvasElement,
  data: readonly (readonly (number | null)[])[],
  shade: (value: number | null) => number | null,
  looks: number,
): void {
  const ratio = window.devicePixelRatio || 1
  const width = canvas.clientWidth
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(ROW * data.length * ratio)
  const context = canvas.getContext('2d')
  if (!context) return
  context.scale(ratio, ratio)
  const colors = readColors()
  const column = width / Math.max(1, looks)
  data.forEach((row, layer) => {
    row.forEach((value, look) => {
      const dark = shade(value)
      if (dark === null) return
      const isBroken = value !== null && !Number.isFinite(value)
      context.globalAlpha = isBroken ? 1 : LEAST_SHADE + (1 - LEAST_SHADE) * dark
      context.fillStyle = isBroken ? colors.critical : (colors.series[0] ?? colors.text)
      context.fillRect(look * column, layer * ROW, Math.max(1, column - 0.5), ROW - 1)
    })
  })
}
