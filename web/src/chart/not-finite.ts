/** NaN and infinity cannot be drawn as a line: they are marked where they were. */
import type { Reading } from '../../../src/core/model.ts'
import type { ChartBand, ChartMark } from './time-chart.tsx'

export interface Stretch {
  readonly from: number
  readonly to: number
  readonly points: number
  /** `NaN`, `∞`, `−∞`, or several of them. */
  readonly what: string
}

/** Points in a row that are not finite; a point without a figure does not end the row. */
export function stretchesOf(x: readonly number[], values: readonly Reading[]): readonly Stretch[] {
  const stretches: Stretch[] = []
  let open: { from: number; to: number; points: number; kinds: Set<string> } | null = null
  const close = () => {
    if (open) stretches.push({ from: open.from, to: open.to, points: open.points, what: [...open.kinds].join(', ') })
    open = null
  }
  values.forEach((value, index) => {
    if (value === null) return
    if (Number.isFinite(value)) {
      close()
      return
    }
    const at = x[index] ?? 0
    open ??= { from: at, to: at, points: 0, kinds: new Set() }
    open.to = at
    open.points++
    open.kinds.add(Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞')
  })
  close()
  return stretches
}

export function marksOfStretches(name: string, stretches: readonly Stretch[]): readonly ChartMark[] {
  return stretches.map(({ from, points, what }) => ({
    at: from,
    label: `${name} is ${what}${points > 1 ? ` (${points} points in a row)` : ''}`,
    tone: 'critical' as const,
  }))
}

export function bandsOfStretches(name: string, stretches: readonly Stretch[]): readonly ChartBand[] {
  return stretches
    .filter(({ from, to }) => to > from)
    .map(({ from, to, what }) => ({ from, to, label: `${name} is ${what}`, tone: 'critical' }))
}

/** What a logarithmic scale can show: above zero. What is not finite stays, for the legend and for who saves the figures. */
export function drawable(values: readonly Reading[], isLog: boolean): readonly Reading[] {
  return isLog ? values.map((value) => (value !== null && value <= 0 ? null : value)) : values
}
