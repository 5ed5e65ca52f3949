/** A summary as text for the terminal; the HTML page shares its formats. */
import { formatBytes, formatCount, formatDuration, formatFigure, formatPercent, formatWhole, printable } from '../core/format.ts'
import type { Cost } from '../core/gpu-cost.ts'
import type { Hyperparameters } from '../core/hyperparameters.ts'
import { type LayerSummary, standoutText } from '../core/layer-figures.ts'
import { leakLineText } from '../core/memory/line-recording.ts'
import { isCauseKnown } from '../core/memory/oom-report.ts'
import type { RunLeakLine } from '../core/model.ts'
import { oomRows } from './oom-text.ts'
import { phasesText } from './phases-text.ts'
import { dollarsText, goodputText, joulesText } from './run-figures.ts'
import { rankRows } from './training-ranks.ts'
import type { Summary, SummaryGpu, SummaryRun, SummaryTraining } from './training-summary.ts'

const MOST_FINDINGS = 10
const MOST_RUNS = 10
const MOST_SETTINGS = 12

export function summaryText(summary: Summary): string {
  const { training, cost, findings, gpus, runs, outOfMemory, leaks, hyperparameters } = summary
  const rows: (readonly [string, string])[] = []
  if (outOfMemory) rows.push(...oomRows(outOfMemory, oomRunName(summary)))
  for (const line of leaks) rows.push(['leak', leakText(line)])
  rows.push(['duration', formatDuration(summary.to - summary.from)])
  if (runs.length > 0) rows.push(...runRows(runs))
  if (training && training.steps > 0) rows.push(['training', trainingText(training)])
  if (training && training.phaseShares.length > 0) rows.push(['phases', phasesText(training.phaseShares)])
  if (Object.keys(hyperparameters).length > 0) rows.push(['settings', hyperparametersText(hyperparameters)])
  if (summary.layers) rows.push(...layerRows(summary.layers))
  const { mfuRatio, joulesPer1000, dollarsPer1000 } = summary.figures
  if (mfuRatio !== null) rows.push(['MFU', formatPercent(mfuRatio)])
  if (training?.time) rows.push(['goodput', goodputText(training.time)])
  if (training) rows.push(...rankRows(training.ranks))
  if (gpus.length > 0) {
    rows.push(['GPU time', `${gpuTimeText(summary.gpuHours)} on ${gpuNames(gpus)}`])
    if (summary.energyKilowattHours !== null)
      rows.push([
        'energy',
        [energyText(summary.energyKilowattHours), joulesPer1000 && joulesText(joulesPer1000)].filter(Boolean).join(', '),
      ])
    if (cost) rows.push(['cost', [costText(cost), dollarsPer1000 && dollarsText(dollarsPer1000)].filter(Boolean).join(', ')])
    for (const gpu of gpus) rows.push([`GPU ${gpu.label}`, gpuText(gpu)])
  }
  rows.push(['findings', findings.length === 0 ? 'none' : `${findings.length}`])
  for (const finding of findings.slice(0, MOST_FINDINGS)) rows.push(['', `${finding.severity} ${finding.detector}: ${finding.message}`])
  if (findings.length > MOST_FINDINGS) rows.push(['', `… and ${findings.length - MOST_FINDINGS} more`])
  for (const note of summary.notes) rows.push(['note', note])
  return [headText(summary), ...rows.map(([name, text]) => `  ${printable(name).padEnd(9)} ${printable(text)}`)].join('\n')
}

function layerRows({ layers, looks, standouts }: LayerSummary): (readonly [string, string])[] {
  const head = `${formatCount(layers, 'layer')}, looked at ${formatCount(looks, 'time')}${standouts.length === 0 ? ': none stands out' : ''}`
  return [['layers', head], ...standouts.map((one) => ['', standoutText(one)] as const)]
}

/** `161 MiB per step from train.py:77 in remember (98% of the growth), rank 3` */
export function leakText(line: RunLeakLine): string {
  return `${leakLineText(line)}${line.rank > 0 ? `, rank ${line.rank}` : ''}`
}

/** In a summary of many runs: the one that ran out of memory. */
export function oomRunName({ runs, outOfMemory }: Summary): string | null {
  return runs.find(({ id }) => id === outOfMemory?.run)?.name ?? null
}

/** null also where the cause of an out-of-memory error is known, which says more. */
export function lastMessage({ outcome, message, outOfMemory }: Summary): string | null {
  return outcome === 'oom' && isCauseKnown(outOfMemory) ? null : message
}

function headText(summary: Summary): string {
  const { title, outcome } = summary
  const ending = outcome === null ? '' : `: ${outcomeText(outcome)}`
  const message = lastMessage(summary)
  const detail = message === null ? '' : ` (${printable(message.split('\n', 1)[0] ?? '').slice(0, 200)})`
  return `gpuwarden · ${printable(title)}${ending}${detail}`
}

const OUTCOMES: Readonly<Record<string, string>> = {
  success: 'succeeded',
  oom: 'ran out of GPU memory',
  nan: 'the loss became NaN',
  killed: 'was killed',
  failed: 'failed',
}

export function outcomeText(outcome: string): string {
  return OUTCOMES[outcome] ?? outcome
}

function runRows(runs: readonly SummaryRun[]): [string, string][] {
  const rows = runs.slice(-MOST_RUNS).map(({ id, name, outcome }): [string, string] => ['', `${runEnding(outcome)}: ${name} (${id})`])
  const more = runs.length - rows.length
  return [['runs', `${runs.length}${more > 0 ? `, the last ${rows.length} of them:` : ''}`], ...rows]
}

export function runEnding(outcome: string | null): string {
  return outcome === null ? 'has not ended' : outcomeText(outcome)
}

function trainingText({ steps, loss, bestLoss, stepsPerSecond, throughputPerSecond, tokensPerSecond }: SummaryTraining): string {
  const parts = [formatCount(steps, 'step')]
  if (stepsPerSecond !== null) parts.push(`${formatFigure(stepsPerSecond)} steps/s`)
  if (throughputPerSecond !== null) parts.push(`${formatFigure(throughputPerSecond)} samples/s`)
  if (tokensPerSecond !== null) parts.push(`${formatFigure(tokensPerSecond)} tokens/s`)
  if (loss !== null) parts.push(`loss ${formatFigure(loss)}`)
  const best = betterLoss(loss, bestLoss)
  if (best !== null) parts.push(`best ${best}`)
  return parts.join(', ')
}

function hyperparametersText(settings: Hyperparameters): string {
  const all = Object.entries(settings)
  const shown = all.slice(0, MOST_SETTINGS).map(([name, value]) => `${name} ${String(value)}`)
  return [...shown, ...(all.length > shown.length ? [`… and ${all.length - shown.length} more`] : [])].join(', ')
}

/** null: the same as the last loss. */
export function betterLoss(loss: number | null, best: number | null): string | null {
  return best === null || (loss !== null && formatFigure(best) === formatFigure(loss)) ? null : formatFigure(best)
}

function gpuText({ memoryTotalBytes, use, peakProcessBytes }: SummaryGpu): string {
  const parts = [`memory peak ${formatBytes(peakProcessBytes ?? use.peakMemoryUsedBytes)} of ${formatBytes(memoryTotalBytes)}`]
  if (peakProcessBytes !== null) parts.push(`with other processes ${formatBytes(use.peakMemoryUsedBytes)}`)
  parts.push(`mean ${formatBytes(use.meanMemoryUsedBytes)}`)
  parts.push(`utilization ${formatPercent(use.meanUtilizationRatio)}`)
  if (use.meanTensorActiveRatio !== null) parts.push(`tensor cores ${formatPercent(use.meanTensorActiveRatio)}`)
  if (use.meanPowerWatts !== null) parts.push(formatWhole(use.meanPowerWatts, 'W'))
  if (use.peakTemperatureCelsius !== null) parts.push(`up to ${formatWhole(use.peakTemperatureCelsius, '°C')}`)
  return parts.join(', ')
}

export function costText(cost: Cost): string {
  const price = priceText(cost)
  const { amount, isEstimate } = cost
  return isEstimate ? `about $${amount.toFixed(2)} (${price}; see --price-per-hour)` : `$${amount.toFixed(2)} (${price})`
}

export function priceText({ pricePerGpuHour, isEstimate }: Cost): string {
  return `$${pricePerGpuHour.toFixed(2)} per GPU hour${isEstimate ? ', a list price' : ''}`
}

export function gpuNames(gpus: readonly SummaryGpu[]): string {
  const counts = new Map<string, number>()
  for (const { name } of gpus) counts.set(name ?? 'unknown GPU', (counts.get(name ?? 'unknown GPU') ?? 0) + 1)
  return Array.from(counts, ([name, count]) => `${count} × ${printable(name)}`).join(', ')
}

/** `2.4 kWh`, `12.3 Wh`, `0.962 Wh`. */
export function energyText(kilowattHours: number): string {
  return kilowattHours < 0.1 ? `${formatFigure(kilowattHours * 1000)} Wh` : `${formatFigure(kilowattHours)} kWh`
}

/** `12.5 GPU hours`, `4.2 GPU minutes`, `33 GPU seconds`. */
export function gpuTimeText(hours: number): string {
  return gpuTime(hours, { hours: 'GPU hours', minutes: 'GPU minutes', seconds: 'GPU seconds' })
}

/** The same without the unit's GPU: `12.5 h`, `4.2 min`, `33 s`. */
export function gpuTimeFigure(hours: number): string {
  return gpuTime(hours, { hours: 'h', minutes: 'min', seconds: 's' })
}

function gpuTime(hours: number, units: { readonly hours: string; readonly minutes: string; readonly seconds: string }): string {
  if (hours >= 1) return `${formatFigure(hours)} ${units.hours}`
  return hours * 60 >= 1 ? `${formatFigure(hours * 60)} ${units.minutes}` : `${formatFigure(hours * 3600)} ${units.seconds}`
}
