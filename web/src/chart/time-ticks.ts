/** Where a time axis has its figures, and what they say, in the person's own zone. */

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const STEPS = [1, 2, 5, 10, 15, 30]
  .map((s) => s * SECOND)
  .concat(
    [1, 2, 5, 10, 15, 30].map((m) => m * MINUTE),
    [1, 2, 3, 6, 12].map((h) => h * HOUR),
    [1, 2, 7, 14, 30, 60, 90].map((d) => d * DAY),
  )

export function timeTicks(from: number, to: number, most: number): readonly number[] {
  const step = STEPS.find((candidate) => (to - from) / candidate <= most) ?? (STEPS.at(-1) as number)
  // Whole local hours and days: the zone's offset counts.
  const offset = -new Date(from).getTimezoneOffset() * MINUTE
  const ticks: number[] = []
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) ticks.push(at)
  return ticks
}

export function tickLabel(at: number, step: number, isFirst: boolean): string {
  const date = new Date(at)
  const two = (value: number) => String(value).padStart(2, '0')
  const day = `${date.getMonth() + 1}/${date.getDate()}`
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0
  if (step >= DAY || (isMidnight && !isFirst)) return day
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`
  return step < MINUTE ? `${time}:${two(date.getSeconds())}` : time
}

/** A span of time counts from its own beginning: no zone, no hours of the day. */
export function elapsedTicks(from: number, to: number, most: number): readonly number[] {
  const step = STEPS.find((candidate) => (to - from) / candidate <= most) ?? (STEPS.at(-1) as number)
  const ticks: number[] = []
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at)
  return ticks
}

/** Where the crosshair or a mark is, in words. */
export function momentText(at: number, x: 'time' | 'step' | 'elapsed'): string {
  if (x === 'step') return `step ${at}`
  return x === 'elapsed' ? `after ${elapsedText(at)}` : new Date(at).toLocaleString(undefined, { hourCycle: 'h23' })
}

/** `42 s`, `3:05 min`, `2:10:05 h` */
export function elapsedText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / SECOND))
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)} h`
}
