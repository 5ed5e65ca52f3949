/** Ticks at round times of a local clock. */
import type { Tick } from './scale.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((count) => count * DAY),
]
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

interface Wall {
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly offsetMs: number
}

type Clock = (at: number) => Wall

function clockOf(timeZone: string | undefined): Clock {
  const format = new Intl.DateTimeFormat('en-GB', {
    ...(timeZone === undefined ? {} : { timeZone }),
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
    hourCycle: 'h23',
  })
  return (at) => {
    const parts: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(at)) parts[type] = Number(value)
    const { year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    const whole = Math.floor(at / SECOND) * SECOND
    return { month, day, hour, minute, second, offsetMs: Date.UTC(year, month - 1, day, hour, minute, second) - whole }
  }
}

const two = (value: number) => String(value).padStart(2, '0')

function label(wall: Wall, stepMs: number, spansDays: boolean): string {
  const isMidnight = wall.hour === 0 && wall.minute === 0 && wall.second === 0
  const date = `${wall.day} ${MONTHS[wall.month - 1] ?? ''}`
  if (stepMs >= DAY || (isMidnight && spansDays)) return date
  return `${two(wall.hour)}:${two(wall.minute)}${stepMs < MINUTE ? `:${two(wall.second)}` : ''}`
}

/** At most `most` ticks within [from, to]. */
export function timeTicks(from: number, to: number, most: number, timeZone?: string): Tick[] {
  const clock = clockOf(timeZone)
  const span = Math.max(1, to - from)
  const stepMs = STEPS.find((step) => span / step <= most) ?? 365 * DAY * Math.ceil(span / (365 * DAY) / Math.max(1, most))
  const { offsetMs } = clock(from)
  const spansDays = Math.floor((from + offsetMs) / DAY) !== Math.floor((to + offsetMs) / DAY)
  const ticks: Tick[] = []
  for (let value = Math.ceil((from + offsetMs) / stepMs) * stepMs - offsetMs; value <= to; value += stepMs) {
    ticks.push({ value, label: label(clock(value), stepMs, spansDays) })
  }
  return ticks
}

/** `15 Nov 2026`, for charts whose ticks show only times of day. */
export function dateOf(at: number, timeZone?: string): string {
  const wall = clockOf(timeZone)(at)
  return `${wall.day} ${MONTHS[wall.month - 1] ?? ''} ${new Date(at + wall.offsetMs).getUTCFullYear()}`
}
