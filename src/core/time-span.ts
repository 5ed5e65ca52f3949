/** Periods as text: in UTC where a report is written, in the reader's zone where it is read. */
import { formatMoment } from './format.ts'

export type Zone = 'utc' | 'local'

/** `2026-03-01 02:10:05 – 02:12:00 +01:00`: day and zone once. `to` null: a moment. */
export function timeText(from: number, to: number | null, zone: Zone): string {
  const moment = zone === 'local' ? formatMoment : utcMoment
  if (to === null) return moment(from)
  const [day = '', time, offset] = moment(from).split(' ')
  const [endDay, endTime, endOffset] = moment(to).split(' ')
  if (time === undefined || endTime === undefined || offset !== endOffset) return `${moment(from)} – ${moment(to)}`
  return `${day} ${time} – ${endDay === day ? endTime : `${endDay} ${endTime}`} ${offset}`
}

function utcMoment(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? 'unknown' : `${date.toISOString().slice(0, -5).replace('T', ' ')} UTC`
}
