/** Columns of numbers as SVG path data: null is a gap; more points than pixels are thinned without losing extremes. */
import type { Reading } from '../model.ts'
import type { Project } from './scale.ts'
import { coordinate } from './svg.ts'

export interface Point {
  readonly x: number
  readonly y: number
}

/** Past this, sums and spans of values would overflow. */
const LARGEST = 1e100

export function isDrawable(value: Reading | undefined): value is number {
  return value !== null && value !== undefined && Math.abs(value) < LARGEST
}

/** Unbroken stretches of a line, in pixels. */
export function stretches(at: readonly number[], values: readonly Reading[], x: Project, y: Project): Point[][] {
  const all: Point[][] = []
  let current: Point[] = []
  for (let index = 0; index < at.length; index++) {
    const moment = at[index]
    const value = values[index]
    if (moment !== undefined && isDrawable(value)) current.push({ x: x(moment), y: y(value) })
    else if (current.length > 0) {
      all.push(current)
      current = []
    }
  }
  if (current.length > 0) all.push(current)
  return all.map(thin)
}

/** Of one column of pixels only the first, lowest, highest and last point can be seen. */
export function thin(points: readonly Point[]): Point[] {
  const first = points[0]
  const last = points.at(-1)
  if (!first || !last || points.length <= 4 * Math.max(1, last.x - first.x)) return [...points]
  const kept: Point[] = []
  for (let start = 0; start < points.length; ) {
    const column = Math.floor(points[start]?.x ?? 0)
    let end = start
    let low = start
    let high = start
    while (end < points.length && Math.floor(points[end]?.x ?? 0) === column) {
      if ((points[end]?.y ?? 0) > (points[low]?.y ?? 0)) low = end
      if ((points[end]?.y ?? 0) < (points[high]?.y ?? 0)) high = end
      end++
    }
    for (const index of [...new Set([start, low, high, end - 1])].sort((a, b) => a - b)) {
      const point = points[index]
      if (point) kept.push(point)
    }
    start = end
  }
  return kept
}

function joined(points: readonly Point[], command: 'M' | 'L'): string {
  let data = ''
  points.forEach((point, index) => {
    data += `${index === 0 ? command : 'L'}${coordinate(point.x)},${coordinate(point.y)}`
  })
  return data
}

/** A single point becomes a dot: the round cap of a line without length. */
export function linePath(parts: readonly (readonly Point[])[]): string {
  return parts.map((part) => joined(part, 'M') + (part.length === 1 ? 'h0.01' : '')).join('')
}

export function areaPath(parts: readonly (readonly Point[])[], baseline: number): string {
  return parts
    .filter((part) => part.length > 1)
    .map((part) => {
      const [first, last] = [part[0], part.at(-1)]
      return `${joined(part, 'M')}L${coordinate(last?.x ?? 0)},${coordinate(baseline)}L${coordinate(first?.x ?? 0)},${coordinate(baseline)}Z`
    })
    .join('')
}

/** The space between two lines, where both are known. */
export function bandPath(at: readonly number[], low: readonly Reading[], high: readonly Reading[], x: Project, y: Project): string {
  const both = (of: readonly Reading[]) =>
    at.map((_, index) => (isDrawable(low[index]) && isDrawable(high[index]) ? (of[index] ?? null) : null))
  const tops = stretches(at, both(high), x, y)
  const bottoms = stretches(at, both(low), x, y)
  return tops
    .map((top, index) => {
      const bottom = bottoms[index] ?? []
      return top.length < 2 ? '' : `${joined(top, 'M')}${joined([...bottom].reverse(), 'L')}Z`
    })
    .join('')
}

/** Sums from the bottom up. Unknown adds nothing; where all is unknown there is a gap. */
export function stack(count: number, layers: readonly (readonly Reading[])[]): Reading[][] {
  const sums: Reading[] = Array.from({ length: count }, (_, index) => (layers.some((layer) => isDrawable(layer[index])) ? 0 : null))
  return layers.map((layer) => {
    for (let index = 0; index < count; index++) {
      const value = layer[index]
      const below = sums[index]
      if (isDrawable(value) && isDrawable(below)) sums[index] = below + value
    }
    return [...sums]
  })
}
