/** Numbers as people read them in a message. */

export function bytes(value: number): string {
  if (value >= 1024 ** 3) return `${(value / 1024 ** 3).toFixed(1)} GiB`
  return `${Math.round(value / 1024 ** 2)} MiB`
}

/** `0.35 s`, `12 s`, `4 min`, `2.5 h` */
export function duration(ms: number): string {
  const seconds = ms / 1000
  if (seconds < 10) return `${Number(seconds.toFixed(2))} s`
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return `${Number((seconds / 3600).toFixed(1))} h`
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
