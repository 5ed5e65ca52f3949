/** What a model needs to compute, and how much of the card's peak that is. Needs neither Node.js nor a package. */
import type { Reading } from './model.ts'
import type { RunModel } from './run-model.ts'

export interface Pace {
  readonly samplesPerSecond: Reading
  readonly tokensPerSecond: Reading
}

/** Of one rank; null: the model or its pace is not known. */
export function flopsPerSecond(model: RunModel | null | undefined, { samplesPerSecond, tokensPerSecond }: Pace): Reading {
  return times(model?.flopsPerToken, tokensPerSecond) ?? times(model?.flopsPerSample, samplesPerSecond)
}

/** Model FLOPs utilization of one rank on one card; null: one of them is not known. */
export function mfuOf(model: RunModel | null | undefined, pace: Pace, peak: Reading): Reading {
  const flops = flopsPerSecond(model, pace)
  return flops === null || peak === null || !(peak > 0) ? null : flops / peak
}

export interface Amounts {
  readonly samples: Reading
  readonly tokens: Reading
}

/** What is counted, and what another step adds to it; null: nobody counts. */
export function addedTo(known: Reading, perSecond: Reading, seconds: number): Reading {
  return perSecond === null || !(perSecond >= 0 && perSecond < Number.POSITIVE_INFINITY) ? known : (known ?? 0) + perSecond * seconds
}

/** What 1,000 of them cost: tokens where they are counted, else samples. */
export interface Per1000 {
  readonly of: 'tokens' | 'samples'
  readonly value: number
}

/** null: neither is counted, or `total` is not known. */
export function per1000(total: Reading, { samples, tokens }: Amounts): Per1000 | null {
  const count = tokens ?? samples
  if (total === null || count === null || !(count > 0)) return null
  return { of: tokens === null ? 'samples' : 'tokens', value: (total / count) * 1000 }
}

function times(a: Reading | undefined, b: Reading): Reading {
  return a === null || a === undefined || b === null || !Number.isFinite(b) ? null : a * b
}
