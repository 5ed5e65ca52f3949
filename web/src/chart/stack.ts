/** Layers on top of each other: each column is the sum of itself and all before it. */
import type { Reading } from '../../../src/core/model.ts'

/** Where one layer is not known nothing of the stack is: a sum that leaves something out would be a lie. */
export function stackUp(columns: readonly (readonly Reading[])[]): Reading[][] {
  const length = columns[0]?.length ?? 0
  const sums: Reading[] = new Array<Reading>(length).fill(0)
  const isWhole = Array.from({ length }, (_, index) => columns.every((column) => (column[index] ?? null) !== null))
  return columns.map((column) =>
    column.map((value, index) => {
      if (!isWhole[index]) return null
      const sum = (sums[index] ?? 0) + (value ?? 0)
      sums[index] = sum
      return sum
    }),
  )
}
