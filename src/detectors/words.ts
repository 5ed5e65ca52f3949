/** For evidence: a rounded number, or NaN and Infinity by name. */
export function evidenceNumber(value: number): number | string {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : String(value)
}
