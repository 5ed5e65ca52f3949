/** Builds a report from a log folder: of one run, or of everything recorded. */
import { basename, resolve } from 'node:path'
import { EXIT, Failure } from '../core/failure.ts'
import type { RankStacks } from '../core/hang/rank-stacks.ts'
import type { Hyperparameters } from '../core/hyperparameters.ts'
import type { LayerSummary } from '../core/layer-figures.ts'
import { readOomReport } from '../core/memory/oom-report.ts'
import type { Finding, Reading, RunHang, RunLeakLine } from '../core/model.ts'
import type { RunModel } from '../core/run-model.ts'
import { timeText } from '../core/time-span.ts'
import { type HtmlReport, htmlReport } from './html.ts'
import { ranksOf } from './recorded-ranks.ts'
import { type LedgerOf, type PidOf, reportCharts } from './training-charts.ts'
import type { Recorded } from './training-recorded.ts'
import { readForReport } from './training-recording.ts'
import { type Summary, type SummaryTraining, summarize } from './training-summary.ts'

/** The record of the run; null for a whole folder. */
export interface ReportRun {
  readonly id: string
  readonly name: string
  readonly startedAt: number
  readonly endedAt: number | null
  readonly outcome: string | null
  readonly message: string | null
  /** Ids or indices; empty when unknown. */
  readonly gpus: readonly string[]
  readonly report: Readonly<Record<string, unknown>> | null
  readonly leakLines?: readonly RunLeakLine[]
  readonly hang?: RunHang | null
  readonly stacks?: readonly RankStacks[]
  readonly hyperparameters?: Hyperparameters
  readonly model?: RunModel | null
  readonly layers?: LayerSummary | null
}

export interface ReportRequest {
  readonly path: string
  readonly run: ReportRun | null
  /** For a whole folder: its runs, oldest first. */
  readonly runs?: readonly ReportRun[]
  readonly pricePerGpuHour: number | null
  /** Only what was recorded between these; null: no limit. */
  readonly from?: number | null
  readonly to?: number | null
  /** Shows the recording to the detectors, up to `until`, where no findings were recorded with it. */
  readonly detect?: (until: number | null, onFindings: (findings: readonly Finding[]) => void) => Promise<unknown>
  readonly ledgerOf: LedgerOf
  readonly pidOf: PidOf
  /** All processes of a run, where they are known. */
  readonly pidsOf?: (run: string) => readonly number[]
  readonly onProgress?: (share: number) => void
}

export interface BuiltReport {
  readonly summary: Summary
  html(version: string, generatedAt: number): string
}

/** The last samples of a run arrive just after its end. */
const AFTER_END_MS = 2000

export async function buildReport(request: ReportRequest): Promise<BuiltReport> {
  const { path, run, ledgerOf, pidOf, onProgress } = request
  const range = rangeOf(request)
  const { detect } = request
  const ownPids = new Set(run ? request.pidsOf?.(run.id) : [])
  const recorded = await readForReport(path, {
    ...range,
    ownPids,
    ...(detect ? { detect: (onFindings) => detect(Number.isFinite(range.to) ? range.to : null, onFindings) } : {}),
    ...(onProgress ? { onProgress } : {}),
  })
  const own = run ? gpusOf(recorded, run) : []
  const shown = { ...(run ? ofRun(recorded, run, own) : recorded), isDetected: recorded.isDetected }
  // A run that died before the first sample still has its post mortem.
  if (recorded.gpus.length === 0 && shown.ranks.length === 0 && !run?.report)
    throw new Failure(`${path} has no samples${run ? ` from the time of run ${run.name}` : ''}${limitsInWords(request)}`, {
      exitCode: EXIT.noSource,
      hint:
        limitsInWords(request) === ''
          ? 'Each line must be a JSON object with a timestamp, as gpuwarden writes it; see docs/cli.md.'
          : 'Give times within the recording, or leave out --from and --to.',
    })
  const runs = run
    ? []
    : (request.runs ?? []).filter(({ startedAt, endedAt }) => startedAt <= shown.to && (endedAt ?? shown.to) >= shown.from)
  const lastReport = (run ?? runs.findLast(({ report }) => readOomReport(report) !== null))?.report ?? null
  const summary = summaryOf(request, shown, runs, lastReport, run !== null && own.length === 0, recorded)
  return {
    summary,
    html: (version, generatedAt) => {
      const report: HtmlReport = {
        summary,
        charts: reportCharts(shown, ledgerOf, pidOf),
        times: { firstAt: shown.buckets.times()[0] ?? shown.from, stepMs: shown.buckets.widthMs, count: shown.buckets.used },
        generatedAt,
        version,
        lastReport,
      }
      return htmlReport(report)
    },
  }
}

function rangeOf({ run, from, to }: ReportRequest): { readonly from: number; readonly to: number } {
  return {
    from: Math.max(run?.startedAt ?? Number.NEGATIVE_INFINITY, from ?? Number.NEGATIVE_INFINITY),
    to: Math.min(run?.endedAt == null ? Number.POSITIVE_INFINITY : run.endedAt + AFTER_END_MS, to ?? Number.POSITIVE_INFINITY),
  }
}

function limitsInWords({ from = null, to = null }: ReportRequest): string {
  if (from !== null && to !== null) return ` from ${timeText(from, to, 'utc')}`
  return from !== null ? ` after ${timeText(from, null, 'utc')}` : to !== null ? ` before ${timeText(to, null, 'utc')}` : ''
}

function gpusOf({ gpus }: Recorded, run: ReportRun): Recorded['gpus'] {
  const own = new Set(run.gpus)
  // A real run may say "0" beside a simulated GPU 0; only a simulated one knows its id.
  return gpus.filter(({ id, index, label, isSimulated }) => own.has(id) || (!isSimulated && (own.has(String(index)) || own.has(label))))
}

/** Leaves out other runs, other GPUs where the run's own are known, and simulated ones that are not its own. */
function ofRun(recorded: Recorded, run: ReportRun, gpus: Recorded['gpus']): Recorded {
  const kept = gpus.length > 0 ? gpus : recorded.gpus.filter(({ isSimulated }) => !isSimulated)
  const indices = new Set(kept.map(({ index }) => index))
  return {
    ...recorded,
    gpus: kept,
    ranks: recorded.ranks.filter((rank) => rank.run === run.id),
    findings: recorded.findings.filter(
      (finding) => (finding.run === null || finding.run === run.id) && (finding.gpuIndex === null || indices.has(finding.gpuIndex)),
    ),
  }
}

function summaryOf(
  { path, run, pricePerGpuHour, pidOf, from = null, to = null }: ReportRequest,
  shown: Recorded & { readonly isDetected: boolean },
  runs: readonly ReportRun[],
  lastReport: ReportRun['report'],
  isOfAllGpus: boolean,
  recorded: Recorded,
): Summary {
  const notes: string[] = []
  if (shown.gpus.some(({ isSimulated }) => isSimulated)) notes.push('The GPUs are SIMULATED.')
  if (shown.gpus.length === 0 && recorded.gpus.length > 0)
    notes.push('This machine has no GPU: the SIMULATED ones are not part of the run.')
  if (isOfAllGpus && shown.gpus.length > 0)
    notes.push('It is unknown which GPUs the run used: GPU readings, energy and cost cover all GPUs of the recording.')
  if (shown.skipped > 0) notes.push(`${shown.skipped} of ${shown.lines} lines could not be read.`)
  for (const fault of shown.faults) notes.push(fault)
  if (shown.isDetected && shown.findings.length > 0)
    notes.push('The recording has no findings of its own: the detectors looked at it for this report.')
  if (run && run.endedAt === null) notes.push('The run has not reported its end.')
  const start = run && from === null ? Math.min(run.startedAt, shown.from) : shown.from
  const end = to === null ? (run?.endedAt ?? shown.to) : shown.to
  return summarize(
    {
      title: run?.name ?? basename(resolve(path)),
      runId: run?.id ?? null,
      outcome: run?.outcome ?? null,
      message: run?.message ?? null,
      outOfMemory: readOomReport(lastReport),
      leaks: run?.leakLines ?? [],
      hang: run?.hang ?? null,
      stacks: run?.stacks ?? [],
      hyperparameters: run?.hyperparameters ?? {},
      layers: run?.layers ?? null,
      runs: runs.map(({ id, name, startedAt, endedAt, outcome }) => ({ id, name, from: startedAt, to: endedAt, outcome })),
      from: start,
      to: end,
      isOfAllGpus,
      gpus: shown.gpus.map(({ id, label, name, totalBytes, use, ownPeakBytes }) => ({
        id,
        label,
        name,
        memoryTotalBytes: totalBytes,
        use: use.summary(),
        peakProcessBytes: ownPeakBytes,
      })),
      training: trainingOf(shown, run, pidOf, start, end),
      findings: shown.findings,
      notes,
    },
    pricePerGpuHour,
  )
}

/** Of the lowest rank with the most steps; throughput is per rank. */
function trainingOf({ ranks, gpus }: Recorded, run: ReportRun | null, pidOf: PidOf, from: number, to: number): SummaryTraining | null {
  const [leader] = [...ranks].sort((a, b) => a.rank - b.rank || b.steps - a.steps)
  if (!leader) return null
  const own = ranks.filter((rank) => rank.run === leader.run)
  const sum = (name: 'samples' | 'tokens') =>
    own.reduce<Reading>((total, rank) => (rank[name] === null ? total : (total ?? 0) + rank[name]), null)
  // Over the time of the steps: a mean of paces would count short steps as much as long ones.
  const pace = (count: Reading) => (count === null || leader.countedSeconds === 0 ? null : count / leader.countedSeconds)
  const seconds = (leader.lastAt - leader.firstAt) / 1000
  return {
    steps: leader.steps,
    lastStep: leader.lastStep,
    loss: leader.loss,
    bestLoss: leader.bestLoss,
    stepsPerSecond: seconds > 0 ? (leader.steps - 1) / seconds : null,
    throughputPerSecond: pace(leader.samples) ?? (leader.throughputCount === 0 ? null : leader.throughputSum / leader.throughputCount),
    meanStepSeconds: leader.secondsCount === 0 ? null : leader.secondsSum / leader.secondsCount,
    tokensPerSecond: pace(leader.tokens),
    samples: sum('samples'),
    tokens: sum('tokens'),
    memoryPeakBytes: leader.peakAllocated,
    phaseShares: leader.phases.shares(),
    model: run?.model ?? null,
    // In a folder of many runs, time without a step belongs to none of them.
    time: run === null ? null : leader.time.until(from, to, run.outcome !== 'success'),
    ranks: ranksOf(own, gpus, pidOf),
    losses: leader.losses.points(),
  }
}
