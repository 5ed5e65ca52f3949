// What people use today, given the same series: an alarm and, where the method has one, a time to full. Ranges shrink with compressed time.

/** Prometheus' predict_linear over an hour, four hours ahead. */
export class PredictLinear {
  constructor(scale) {
    this.range = Math.round(3600 / 10)
    this.unit = 10 / scale
    this.ahead = (4 * 3600) / scale
    this.values = []
    this.count = 0
  }

  push(value) {
    this.values.push(value)
    if (this.values.length > this.range) this.values.shift()
    if (this.values.length < this.range || ++this.count % 6 !== 0) return undefined
    const { slope, end } = line(this.values, this.unit)
    return { alarm: end + slope * this.ahead >= 1, seconds: slope > 0 ? Math.max(0, 1 - end) / slope : Number.POSITIVE_INFINITY }
  }
}

/** Mann–Kendall's test and Theil–Sen's slope on two-minute means of the last hour and a half. */
export class MannKendall {
  constructor(scale) {
    this.unit = 120 / scale
    this.means = []
    this.block = []
  }

  push(value) {
    this.block.push(value)
    if (this.block.length < 12) return undefined
    this.means.push(this.block.reduce((sum, one) => sum + one, 0) / 12)
    this.block = []
    if (this.means.length > 45) this.means.shift()
    const n = this.means.length
    if (n < 45) return undefined
    let score = 0
    const slopes = []
    for (let i = 1; i < n; i++)
      for (let j = 0; j < i; j++) {
        score += Math.sign(this.means[i] - this.means[j])
        slopes.push((this.means[i] - this.means[j]) / (i - j))
      }
    const z = (score - Math.sign(score)) / Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18)
    slopes.sort((a, b) => a - b)
    const slope = slopes[slopes.length >> 1] / this.unit
    const alarm = z > 3.3 && slope * this.unit * 30 * 72 > 1
    return { alarm, seconds: alarm ? Math.max(0, 1 - this.means[n - 1]) / slope : Number.POSITIVE_INFINITY }
  }
}

/** "Memory above 90 %". */
export class Threshold {
  push(value) {
    return { alarm: value > 0.9, seconds: value > 0.9 ? 0 : Number.POSITIVE_INFINITY }
  }
}

function line(values, unit) {
  const n = values.length
  const middle = (n - 1) / 2
  let mean = 0
  for (const value of values) mean += value / n
  let sxy = 0
  let sxx = 0
  for (let i = 0; i < n; i++) {
    sxy += (i - middle) * (values[i] - mean)
    sxx += (i - middle) ** 2
  }
  const slope = sxy / sxx
  return { slope: slope / unit, end: mean + slope * middle }
}
