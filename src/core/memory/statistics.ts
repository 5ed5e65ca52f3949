/** Robust statistics of short series; results for too short a series are 0. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Linear interpolation between the two nearest values; q in 0–1. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return 0
  return quantileOfSorted([...values].sort(ascending), q)
}

export function quantileOfSorted(sorted: readonly number[], q: number): number {
  const position = (sorted.length - 1) * q
  const below = Math.floor(position)
  const low = sorted[below] ?? 0
  const high = sorted[below + 1] ?? low
  return low + (high - low) * (position - below)
}

/** Median absolute deviation, scaled to the standard deviation of a normal distribution. */
export function medianAbsoluteDeviation(values: readonly number[], center = median(values)): number {
  return 1.4826 * median(values.map((value) => Math.abs(value - center)))
}

/** Median of all pairwise slopes of y over x; O(n²), so decimate first. */
export function theilSen(x: readonly number[], y: readonly number[], from = 0, to = y.length): number {
  const slopes: number[] = []
  for (let i = from + 1; i < to; i++)
    for (let j = from; j < i; j++) {
      const run = at(x, i) - at(x, j)
      if (run > 0) slopes.push((at(y, i) - at(y, j)) / run)
    }
  return median(slopes)
}

/** Standard normal score of Mann–Kendall's test with the correction for ties: above 3 is an upward trend beyond chance. */
export function mannKendall(y: readonly number[]): number {
  const n = y.length
  if (n < 3) return 0
  let s = 0
  for (let i = 1; i < n; i++) for (let j = 0; j < i; j++) s += Math.sign(at(y, i) - at(y, j))
  let ties = 0
  const sorted = [...y].sort(ascending)
  for (let start = 0; start < n; ) {
    let end = start + 1
    while (end < n && sorted[end] === sorted[start]) end++
    const run = end - start
    ties += run * (run - 1) * (2 * run + 5)
    start = end
  }
  const variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
  return variance > 0 ? (s - Math.sign(s)) / Math.sqrt(variance) : 0
}

export interface Line {
  readonly slope: number
  /** Value of the line at x = 0. */
  readonly intercept: number
  /** Standard error of the slope, widened for residuals that follow one another. */
  readonly slopeError: number
  /** Root mean square of the residuals. */
  readonly residual: number
}

/** Least squares with the error inflated by the first autocorrelation of the residuals; null below three points. */
export function fitLine(x: readonly number[], y: readonly number[]): Line | null {
  const n = y.length
  if (n < 3) return null
  let meanX = 0
  let meanY = 0
  for (let i = 0; i < n; i++) {
    meanX += at(x, i) / n
    meanY += at(y, i) / n
  }
  let sxx = 0
  let sxy = 0
  for (let i = 0; i < n; i++) {
    const dx = at(x, i) - meanX
    sxx += dx * dx
    sxy += dx * (at(y, i) - meanY)
  }
  if (sxx <= 0) return null
  const slope = sxy / sxx
  const intercept = meanY - slope * meanX
  let squares = 0
  let products = 0
  let previous = 0
  for (let i = 0; i < n; i++) {
    const error = at(y, i) - intercept - slope * at(x, i)
    squares += error * error
    if (i > 0) products += error * previous
    previous = error
  }
  const correlation = squares > 0 ? Math.min(0.9, Math.max(0, products / squares)) : 0
  const slopeError = Math.sqrt(((squares / (n - 2) / sxx) * (1 + correlation)) / (1 - correlation))
  return { slope, intercept, slopeError, residual: Math.sqrt(squares / n) }
}

export function ascending(a: number, b: number): number {
  return a - b
}

function at(values: readonly number[], index: number): number {
  return values[index] ?? 0
}
