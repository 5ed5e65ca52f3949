/** The week or the month that a mail is about, in local time. */
export interface Period {
  /** `2026-11-09`: its first day. */
  readonly name: string
  readonly from: number
  readonly to: number
}

/** The last one whose mail is due: on Monday, or on the first of the month, from `hour` on. */
export function duePeriod(every: 'weekly' | 'monthly', hour: number, now: number): Period {
  const today = new Date(now)
  const back = today.getHours() < hour ? 1 : 0
  const day = new Date(today.getFullYear(), today.getMonth(), today.getDate() - back)
  if (every === 'monthly') return between(monthStart(day, -1), monthStart(day, 0))
  const monday = new Date(day.getFullYear(), day.getMonth(), day.getDate() - ((day.getDay() + 6) % 7))
  return between(new Date(monday.getFullYear(), monday.getMonth(), monday.getDate() - 7), monday)
}

function monthStart(day: Date, months: number): Date {
  return new Date(day.getFullYear(), day.getMonth() + months, 1)
}

function between(from: Date, to: Date): Period {
  const two = (value: number) => String(value).padStart(2, '0')
  const name = `${from.getFullYear()}-${two(from.getMonth() + 1)}-${two(from.getDate())}`
  return { name, from: from.getTime(), to: to.getTime() }
}

/** `9 to 15 November 2026` */
export function periodText({ from, to }: Pick<Period, 'from' | 'to'>): string {
  const [first, last] = [new Date(from), new Date(to - 1)]
  const month = (date: Date) => MONTHS[date.getMonth()] ?? ''
  const end = `${last.getDate()} ${month(last)} ${last.getFullYear()}`
  if (first.toDateString() === last.toDateString()) return end
  const isSameMonth = first.getMonth() === last.getMonth() && first.getFullYear() === last.getFullYear()
  const year = first.getFullYear() === last.getFullYear() ? '' : ` ${first.getFullYear()}`
  return `${first.getDate()}${isSameMonth ? '' : ` ${month(first)}${year}`} to ${end}`
}

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]
