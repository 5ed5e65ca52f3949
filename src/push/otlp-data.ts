export interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string } | { readonly intValue: string }
}

export interface NumberPoint {
  readonly attributes: readonly Attribute[]
  readonly startTimeUnixNano?: string
  readonly timeUnixNano: string
  /** Protobuf's JSON has NaN and infinities as text. */
  readonly asDouble: number | string
}

export interface HistogramPoint {
  readonly attributes: readonly Attribute[]
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
  readonly count: string
  readonly sum: number | string
  readonly bucketCounts: readonly string[]
  readonly explicitBounds: readonly number[]
}

export interface OtlpMetric {
  readonly name: string
  readonly unit: string
  readonly description: string
  readonly gauge?: { readonly dataPoints: readonly NumberPoint[] }
  readonly sum?: { readonly dataPoints: readonly NumberPoint[]; readonly aggregationTemporality: 2; readonly isMonotonic: boolean }
  readonly histogram?: { readonly dataPoints: readonly HistogramPoint[]; readonly aggregationTemporality: 2 }
}

export interface PointTime {
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
}

export function text(key: string, value: string): Attribute {
  return { key, value: { stringValue: value } }
}

/** Epoch milliseconds have more digits than a number keeps as nanoseconds. */
export function nanos(atMs: number): string {
  return `${Math.round(atMs * 1000)}000`
}

export function double(value: number): number | string {
  if (Number.isNaN(value)) return 'NaN'
  return Number.isFinite(value) ? value : value > 0 ? 'Infinity' : '-Infinity'
}
