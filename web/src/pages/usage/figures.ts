import type { Reading } from '../../../../src/core/model.ts'
import { NOT_AVAILABLE } from '../../words.ts'

/** Three digits are enough to compare. */
export function amount(value: Reading): string {
  if (value === null) return NOT_AVAILABLE
  return value >= 100 || value === 0 ? String(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

export function money(value: Reading): string {
  return value === null ? NOT_AVAILABLE : `$${amount(value)}`
}
