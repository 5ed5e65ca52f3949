/** Spans of local time in which people do not want to be disturbed, or in which problems are expected. */
export const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
export type Weekday = (typeof WEEKDAYS)[number]

/** Every week on these days (all when not given), from one time of day to another; past midnight when `to` is not after `from`. */
export interface WeeklyWindow {
  readonly days?: readonly Weekday[] | undefined
  /** `22:00` */
  readonly from: string
  readonly to: string
}

/** Once, from one moment to another, as ISO times. */
export interface SingleWindow {
  readonly start: string
  readonly end: string
}

export type TimeWindow = WeeklyWindow | SingleWindow

/** Daylight saving is the machine's: a 02:30 that comes twice is in the window twice, one that never comes is not. */
export function isInWindow(window: TimeWindow, at: number): boolean {
  if ('start' in window) return at >= Date.parse(window.start) && at < Date.parse(window.end)
  const local = new Date(at)
  const minute = local.getHours() * 60 + local.getMinutes()
  const day = local.getDay()
  const [from, to] = [minuteOf(window.from), minuteOf(window.to)]
  if (from < to) return minute >= from && minute < to && isOn(window, day)
  // The part after midnight belongs to the day on which the window began.
  return (minute >= from && isOn(window, day)) || (minute < to && isOn(window, (day + 6) % 7))
}

function isOn({ days }: WeeklyWindow, day: number): boolean {
  const name = WEEKDAYS[day]
  return days === undefined || days.length === 0 || (name !== undefined && days.includes(name))
}

function minuteOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number)
  return (hours ?? 0) * 60 + (minutes ?? 0)
}
