/** The summary of a run, or of a stretch of a recording: the same figures for the terminal, JSON and the HTML page. */
import { formatBytes, formatDuration, formatPercent, printable } from '../format.ts'
import type { Reading, Severity } from '../model.ts'
import { type Cost, costOf } from './training-cost.ts'
import type { GpuUseSummary } from './training-gpu-use.ts'

export interface SummaryGpu {
  readonly id: string
  readonly label: string
  readonly name: string | null
  readonly memoryTotalBytes: Reading
  readonly use: GpuUseSummary
  /** Of the run's own processes, where they were seen. */
  readonly peakProcessBytes: Reading
}

export interface SummaryFinding {
  readonly at: number
  readonly until: Reading
  readonly detector: string
  readonly severity: Severity
  readonly message: string
  readonly gpuIndex: Reading
  readonly run: string | null
  readonly advice: readonly string[]
}

export interface SummaryTraining {
  readonly steps: number
  readonly lastStep: Reading
  readonly loss: Reading
  readonly bestLoss: Reading
  readonly stepsPerSecond: Reading
  readonly throughputPerSecond: Reading
  readonly meanStepSeconds: Reading
}

export interface Summary {
  readonly title: string
  readonly runId: string | null
  readonly outcome: string | null
  readonly message: string | null
  readonly from: number
  readonly to: number
  readonly gpus: readonly SummaryGpu[]
  readonly gpuHours: number
  readonly energyKilowattHours: Reading
  readonly cost: Cost | null
  readonly training: SummaryTraining | null
  readonly findings: readonly SummaryFinding[]
  /** What a reader has to know: simulated cards, figures of the whole machine, lines that could not be read. */
  readonly notes: readonly string[]
}

export type SummaryInput = Omit<Summary, 'gpuHours' | 'energyKilowattHours' | 'cost'>

export function summarize(input: SummaryInput, pricePerGpuHour: number | null): Summary {
  const hours = Math.max(0, input.to - input.from) / 3_600_000
  const joules = input.gpus.map(({ use }) => use.energyJoules).filter((value) => value !== null)
  return {
    ...input,
    gpuHours: hours * input.gpus.length,
    energyKilowattHours: joules.length === 0 ? null : joules.reduce((a, b) => a + b, 0) / 3.6e6,
    cost: costOf(
      input.gpus.map(({ name }) => ({ name, hours })),
      pricePerGpuHour,
    ),
  }
}

export function summaryText(summary: Summary): string {
  const { training, cost, findings, gpus } = summary
  const rows: [string, string][] = [['duration', exactDuration(summary.to - summary.from)]]
  if (training && training.steps > 0) rows.push(['training', trainingText(training)])
  if (gpus.length > 0) {
    rows.push(['GPU time', `${digits(summary.gpuHours)} GPU hours on ${gpuNames(gpus)}`])
    if (summary.energyKilowattHours !== null) rows.push(['energy', `${digits(summary.energyKilowattHours)} kWh`])
    if (cost) rows.push(['cost', costText(cost)])
    for (const gpu of gpus) rows.push([`GPU ${gpu.label}`, gpuText(gpu)])
  }
  rows.push(['findings', findings.length === 0 ? 'none' : `${findings.length}`])
  for (const finding of findings.slice(0, 10)) rows.push(['', `${finding.severity} ${finding.detector}: ${printable(finding.message)}`])
  if (findings.length > 10) rows.push(['', `… and ${findings.length - 10} more`])
  for (const note of summary.notes) rows.push(['note', printable(note)])
  const ending = summary.outcome === null ? '' : `: ${outcomeText(summary.outcome)}`
  const detail = summary.message === null ? '' : ` (${printable(summary.message.split('\n', 1)[0] ?? '').slice(0, 200)})`
  return [`gpuwarden · ${printable(summary.title)}${ending}${detail}`, ...rows.map(([name, text]) => `  ${name.padEnd(10)}${text}`)].join(
    '\n',
  )
}

const OUTCOMES: Readonly<Record<string, string>> = {
  success: 'ended well',
  oom: 'ran out of GPU memory',
  nan: 'the loss became NaN',
  killed: 'was killed',
  failed: 'failed',
}

export function outcomeText(outcome: string): string {
  return OUTCOMES[outcome] ?? outcome
}

function trainingText({ steps, loss, bestLoss, stepsPerSecond, throughputPerSecond }: SummaryTraining): string {
  const parts = [`${steps} steps`]
  if (stepsPerSecond !== null) parts.push(`${digits(stepsPerSecond)} steps/s`)
  if (throughputPerSecond !== null) parts.push(`${digits(throughputPerSecond)} samples/s`)
  if (loss !== null) parts.push(`loss ${digits(loss)}`)
  if (bestLoss !== null && bestLoss !== loss) parts.push(`best ${digits(bestLoss)}`)
  return parts.join(', ')
}

function gpuText({ memoryTotalBytes, use, peakProcessBytes }: SummaryGpu): string {
  const parts = [`memory peak ${formatBytes(use.peakMemoryUsedBytes)} of ${formatBytes(memoryTotalBytes)}`]
  parts.push(`mean ${formatBytes(use.meanMemoryUsedBytes)}`)
  if (peakProcessBytes !== null) parts.push(`own processes up to ${formatBytes(peakProcessBytes)}`)
  parts.push(`utilisation ${formatPercent(use.meanUtilizationRatio)}`)
  if (use.meanTensorActiveRatio !== null) parts.push(`tensor cores ${formatPercent(use.meanTensorActiveRatio)}`)
  if (use.meanPowerWatts !== null) parts.push(`${Math.round(use.meanPowerWatts)} W`)
  if (use.peakTemperatureCelsius !== null) parts.push(`up to ${Math.round(use.peakTemperatureCelsius)}°C`)
  return parts.join(', ')
}

export function costText({ amount, pricePerGpuHour, isEstimate }: Cost): string {
  const price = `$${pricePerGpuHour.toFixed(2)} per GPU hour`
  return isEstimate ? `about $${amount.toFixed(2)} (${price}, a list price; see --price-per-hour)` : `$${amount.toFixed(2)} (${price})`
}

export function gpuNames(gpus: readonly SummaryGpu[]): string {
  const counts = new Map<string, number>()
  for (const { name } of gpus) counts.set(name ?? 'unknown GPU', (counts.get(name ?? 'unknown GPU') ?? 0) + 1)
  return Array.from(counts, ([name, count]) => `${count} × ${printable(name)}`).join(', ')
}

/** Three digits that count. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(2)
  return String(Number(value.toPrecision(Math.abs(value) >= 100 ? Math.max(3, String(Math.trunc(Math.abs(value))).length) : 3)))
}

function exactDuration(milliseconds: number): string {
  const seconds = milliseconds / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 3600) return seconds < 60 ? `${Math.round(seconds)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return formatDuration(milliseconds)
}
