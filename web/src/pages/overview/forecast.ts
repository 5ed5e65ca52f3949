import type { Finding } from '../../../../src/core/model.ts'
import type { Tone } from '../../words.ts'

const SOON_MS = 10 * 60_000
const AT_ONCE_MS = 1000

export function forecastTone({ riskLevel }: Finding): Tone {
  return riskLevel === 'critical' || riskLevel === 'high' ? 'critical' : riskLevel === 'medium' ? 'warning' : 'muted'
}

/** `full at 14:32 (14:20–15:10), risk high` */
export function forecastWords({ predictedAt, predictedEarliestAt, predictedLatestAt, riskLevel }: Finding, now: number): string {
  const level = riskLevel === null ? '' : `, risk ${riskLevel}`
  if (predictedAt === null) return `may run out of memory${level}`
  if (predictedAt <= now + AT_ONCE_MS) return `may be full at any moment${level}`
  const isSoon = predictedAt - now < SOON_MS
  const time = (at: number) => timeOfDay(at, now, isSoon)
  const interval =
    predictedEarliestAt === null || predictedLatestAt === null ? '' : ` (${time(predictedEarliestAt)}–${time(predictedLatestAt)})`
  return `full at ${time(predictedAt)}${interval}${level}`
}

function timeOfDay(at: number, now: number, hasSeconds: boolean): string {
  const date = new Date(at)
  const time = [date.getHours(), date.getMinutes(), ...(hasSeconds ? [date.getSeconds()] : [])].map(two).join(':')
  const isToday = date.toDateString() === new Date(now).toDateString()
  return isToday ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
