import { textNumber } from './recording/json.ts'

/** JSON with NaN and ±Infinity as strings: a loss that is NaN must not arrive as "unknown". */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === 'number' && !Number.isFinite(item) ? String(item) : item))
}

/** A number, also one that was written as text; null for anything else. */
export function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : (textNumber(value) ?? null)
}
