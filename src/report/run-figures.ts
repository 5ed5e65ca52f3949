/** The figures that people steer a training by: MFU, goodput, energy and money per 1,000 tokens or samples. */
import { peakFlops } from '../core/card-peaks.ts'
import { formatFigure, formatPercent } from '../core/format.ts'
import type { Cost } from '../core/gpu-cost.ts'
import type { Reading } from '../core/model.ts'
import { type Amounts, mfuOf, type Per1000, per1000 } from '../core/model-work.ts'
import type { RunModel } from '../core/run-model.ts'
import { lostParts, type RunTime, TIME_WORDS } from '../core/run-time.ts'

export interface RunFigures {
  /** Model FLOPs utilization; null: the model, the card or the pace is not known. */
  readonly mfuRatio: Reading
  /** Of all GPUs of the run. */
  readonly joulesPer1000: Per1000 | null
  readonly dollarsPer1000: Per1000 | null
}

interface Trained extends Amounts {
  readonly model: RunModel | null
  readonly throughputPerSecond: Reading
  readonly tokensPerSecond: Reading
  readonly ranks: readonly unknown[]
}

type Cards = readonly { readonly name: string | null }[]

export function runFigures(training: Trained | null, gpus: Cards, isOfAllGpus: boolean, joules: Reading, cost: Cost | null): RunFigures {
  // Readings of GPUs that may be somebody else's say nothing of this run.
  if (training === null || (isOfAllGpus && gpus.length > 1)) return { mfuRatio: null, joulesPer1000: null, dollarsPer1000: null }
  return {
    mfuRatio: mfu(training, gpus),
    joulesPer1000: per1000(joules, training),
    dollarsPer1000: per1000(cost?.amount ?? null, training),
  }
}

/** Of the rank that stands for the run; a rank may have several GPUs. */
function mfu({ model, throughputPerSecond, tokensPerSecond, ranks }: Trained, gpus: Cards): Reading {
  const peaks = gpus.map(({ name }) => peakFlops(name, model?.computeType ?? null))
  const [peak = null] = peaks
  if (peak === null || peaks.some((other) => other !== peak)) return null
  const each = Math.max(1, gpus.length / Math.max(1, ranks.length))
  return mfuOf(model, { samplesPerSecond: throughputPerSecond, tokensPerSecond }, peak * each)
}

/** `78% productive; start-up 12%, waiting for data 8%` */
export function goodputText(time: RunTime): string {
  const lost = lostParts(time).map(({ part, ratio }) => `${TIME_WORDS[part]} ${formatPercent(ratio)}`)
  return `${formatPercent(time.goodputRatio)} productive${lost.length === 0 ? '' : `; ${lost.join(', ')}`}`
}

/** `1.8 J per 1,000 tokens`, `2.4 kJ per 1,000 samples` */
export function joulesText({ value, of }: Per1000): string {
  const amount =
    value >= 1e6 ? `${formatFigure(value / 1e6)} MJ` : value >= 1000 ? `${formatFigure(value / 1000)} kJ` : `${formatFigure(value)} J`
  return `${amount} per 1,000 ${of}`
}

/** `$0.0021 per 1,000 tokens` */
export function dollarsText({ value, of }: Per1000): string {
  return `$${value >= 0.01 ? value.toFixed(2) : value.toPrecision(2)} per 1,000 ${of}`
}
