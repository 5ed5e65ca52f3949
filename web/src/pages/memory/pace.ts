/** How fast memory grows: always by the minute, so that two paces can be compared. */
const KIBIBYTE = 1024
const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3

export function pace(bytesPerSecond: number): string {
  const perMinute = Math.abs(bytesPerSecond) * 60
  const sign = bytesPerSecond < 0 ? '−' : ''
  if (perMinute >= 10 * GIBIBYTE) return `${sign}${(perMinute / GIBIBYTE).toFixed(1)} GiB/min`
  if (perMinute >= 10 * MEBIBYTE) return `${sign}${Math.round(perMinute / MEBIBYTE)} MiB/min`
  if (perMinute >= MEBIBYTE / 10) return `${sign}${(perMinute / MEBIBYTE).toFixed(1)} MiB/min`
  return `${sign}${(perMinute / KIBIBYTE).toFixed(1)} KiB/min`
}
