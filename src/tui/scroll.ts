import type { Scroll } from './screen-data.ts'

/** `7`, `3 of 7`, `2–5 of 7`: what is in sight. */
export function range({ offset }: Scroll, visible: number, count: number): string {
  if (count <= visible) return String(count)
  const last = Math.min(count, offset + visible)
  return last === offset + 1 ? `${last} of ${count}` : `${offset + 1}–${last} of ${count}`
}

export function follow({ offset, selected }: Scroll, count: number, visible: number): Scroll {
  const chosen = Math.max(0, Math.min(selected, count - 1))
  const least = Math.max(0, chosen - visible + 1)
  const most = Math.max(0, count - visible)
  return { offset: Math.max(0, Math.min(most, Math.max(least, Math.min(offset, chosen)))), selected: chosen }
}
