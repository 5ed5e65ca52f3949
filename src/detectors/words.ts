/** Numbers as people read them in a message. */

/** `140.3 GiB`, `512 MiB`, `2.6 MiB`, `40 KiB` */
export function bytes(value: number): string {
  if (value >= 1024 ** 3) return `${(value / 1024 ** 3).toFixed(1)} GiB`
  if (value >= 10 * 1024 ** 2 || value <= 0) return `${Math.round(value / 1024 ** 2)} MiB`
  if (value >= 1024 ** 2) return `${Number((value / 1024 ** 2).toFixed(1))} MiB`
  return value >= 1024 ? `${Math.round(value / 1024)} KiB` : `${Math.round(value)} B`
}

/** `2.6 ms`, `350 ms`, `1.25 s`, `12 s`, `4 min`, `2.5 h`. Below ten milliseconds two digits count, above them whole ones. */
export function duration(ms: number): string {
  if (ms > 0 && Math.round(ms) < 1000) return `${ms < 10 ? Number(ms.toPrecision(2)) : Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${Number(seconds.toFixed(2))} s`
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return `${Number((seconds / 3600).toFixed(1))} h`
}

/** When something will be so, with its interval: `in 12 s (9.2 s to 16 s)`; what is nearer than a second has no digits worth telling. */
export function ahead(ms: number, earliestMs: number, latestMs: number): string {
  if (ms >= 1000) return `in ${duration(ms)} (${duration(earliestMs)} to ${duration(latestMs)})`
  return latestMs < 1000 ? 'within a second' : `within a second, at the latest in ${duration(latestMs)}`
}

export function percent(ratio: number): string {
  return `${Math.round(ratio * 100)} %`
}

/** Four significant digits, without an exponent where it can be avoided. */
export function figure(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value)
}

/** For evidence: a finite number rounded to what matters, or the name of what it is. */
export function evidenceNumber(value: number): number | string {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : String(value)
}
