/** When clocks were limited, and why: bands of the time axis. */
import type { Reading } from '../../../../src/core/model.ts'
import type { ChartBand } from '../../chart/time-chart.tsx'
import { clockReasons } from '../../words.ts'

const IDLE = 0x1

/** `masks`: of averaged steps the largest in each, where the bits for what is worst are. */
export function throttleBands(at: readonly number[], masks: readonly Reading[], stepMs: number): readonly ChartBand[] {
  const bands: { from: number; to: number; label: string; tone: ChartBand['tone'] }[] = []
  let open: (typeof bands)[number] | null = null
  at.forEach((moment, index) => {
    const [worst] = clockReasons((masks[index] ?? null) === null ? null : (masks[index] ?? 0) & ~IDLE)
    const end = moment + stepMs
    if (!worst) {
      if (open) open.to = moment
      open = null
      return
    }
    if (open?.label === worst.words) {
      open.to = end
      return
    }
    if (open) open.to = moment
    open = { from: moment, to: Math.max(end, at[index + 1] ?? end), label: worst.words, tone: worst.tone }
    bands.push(open)
  })
  return bands
}

/** `too hot 4 min, power cap 1 h`: how long each reason held in the span. */
export function totals(bands: readonly ChartBand[]): ReadonlyMap<string, { readonly ms: number; readonly tone: ChartBand['tone'] }> {
  const sums = new Map<string, { ms: number; tone: ChartBand['tone'] }>()
  for (const { label, tone, from, to } of bands) sums.set(label, { ms: (sums.get(label)?.ms ?? 0) + to - from, tone })
  return sums
}
