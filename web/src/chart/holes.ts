/** Lines over points without a figure: passed over where that is usual, broken where nothing came for much longer. */
import type { Reading } from '../../../src/core/model.ts'

/** How many points a line goes on over nothing: four times its usual step. */
export function longestHole(values: readonly Reading[]): number {
  const steps: number[] = []
  let last = -1
  values.forEach((value, index) => {
    if (value === null) return
    if (last >= 0) steps.push(index - last)
    last = index
  })
  steps.sort((a, b) => a - b)
  return 4 * (steps[steps.length >> 1] ?? 0)
}

/** uPlot passes over what is undefined, and breaks a line at null. */
export function bridged(values: readonly Reading[], longest: number): readonly (Reading | undefined)[] {
  const line: (Reading | undefined)[] = [...values]
  let last = -1
  values.forEach((value, index) => {
    if (value === null) return
    if (last >= 0 && index - last - 1 <= longest) line.fill(undefined, last + 1, index)
    last = index
  })
  return line
}

/** Points between two breaks: as a line they would be invisible. null: there are none. */
export function lonePoints(line: readonly (Reading | undefined)[]): number[] | null {
  const found: number[] = []
  let open = 0
  let count = 0
  const close = () => {
    if (count === 1) found.push(open)
    count = 0
  }
  line.forEach((value, index) => {
    if (value === null) close()
    else if (value !== undefined && count++ === 0) open = index
  })
  close()
  return found.length === 0 ? null : found
}
