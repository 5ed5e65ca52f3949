/** JSON that keeps NaN and ±Infinity, as strings. */
import { textNumber } from '../core/recording/json.ts'

export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === 'number' && !Number.isFinite(item) ? String(item) : item))
}

/** A number, also one that was written as text; null for anything else. */
export function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : (textNumber(value) ?? null)
}
