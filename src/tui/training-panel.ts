import { formatAge, formatFigure, formatPercent, printable } from '../core/format.ts'
import type { Finding, Reading } from '../core/model.ts'
import { tokensPerSecond } from '../core/rank-groups.ts'
import { NOT_ATTRIBUTED } from '../core/step-phases.ts'
import { sparkline } from './graph.ts'
import { BOLD, type Rect, SELECTED, type Style, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import type { RunData, ScreenData, Scroll, View } from './screen-data.ts'
import { follow, range } from './scroll.ts'
import { cut } from './text-width.ts'
import { severityTone, shortBytes, shortDuration } from './words.ts'

/** From this width on a run needs one line instead of two. */
const ONE_LINE = 170
const QUIET_MS = 60_000
/** From here on waiting is worth a color. */
const WAIT_RATIO = 0.2

export function trainingHeight(runs: number, width: number, most: number): number {
  if (runs === 0) return 0
  return Math.max(0, Math.min(most, 1 + runs * linesPerRun(width, most)))
}

export function linesPerRun(width: number, room: number): number {
  return width >= ONE_LINE || room < 3 ? 1 : 2
}

export function drawTraining(painter: Painter, data: ScreenData, view: View, { x, y, width, height }: Rect): Scroll {
  const isFocused = view.focus === 'training' && view.overlay === null
  const hasTitle = height >= 2
  const per = linesPerRun(width, height)
  const visible = Math.max(1, Math.floor((height - (hasTitle ? 1 : 0)) / per))
  const kept = follow(view.scroll.training, data.runs.length, visible)
  if (hasTitle) {
    painter.rule(x, y, width, [{ text: `Training ${range(kept, visible, data.runs.length)}` }], isFocused)
    painter.hit({ x, y, width, height: 1 }, { kind: 'panel', panel: 'training' })
  }
  data.runs.slice(kept.offset, kept.offset + visible).forEach((run, index) => {
    const top = y + (hasTitle ? 1 : 0) + index * per
    const first = progress(run, painter.ascii, width)
    const second = memory(run, data.at, painter.ascii, width)
    if (per === 1) painter.spans(x + 1, top, width - 2, [...first, ...second])
    else {
      painter.spans(x + 1, top, width - 2, first)
      painter.spans(x + 3, top + 1, width - 4, second)
    }
    painter.hit({ x, y: top, width, height: per }, { kind: 'row', panel: 'training', index: kept.offset + index })
    if (isFocused && kept.offset + index === kept.selected) painter.grid.mark({ x, y: top, width, height: per }, SELECTED)
  })
  return kept
}

function progress(run: RunData, ascii: boolean, width: number): Span[] {
  const { step } = run
  const tokens = tokensPerSecond(step)
  const name = cut(printable(run.name), width < 60 ? 12 : 24)
  const graph = sparkline(run.losses, width < 60 ? 8 : width < 120 ? 12 : 24, ascii).trimStart()
  return [
    { text: name, style: TONE.title | BOLD },
    { text: `step ${step.step.toLocaleString('en-US')}` },
    { text: `loss ${formatFigure(step.loss)}`, style: brokenTone(step.loss) },
    { text: run.losses.length > 1 ? graph : '', style: TONE.busy },
    { text: step.epoch === null ? '' : `epoch ${formatFigure(step.epoch)}` },
    { text: step.throughputPerSecond === null ? '' : `${formatFigure(step.throughputPerSecond)}/s`, style: TONE.muted },
    { text: tokens === null ? '' : `${formatFigure(tokens)} tokens/s`, style: TONE.muted },
    { text: run.mfuRatio === null ? '' : `MFU ${formatPercent(run.mfuRatio)}`, style: TONE.muted },
    { text: run.outcome !== null ? '' : `ETA ${run.etaMs === null ? 'N/A' : shortDuration(run.etaMs)}`, style: TONE.muted },
    { text: run.ranks > 1 ? `${run.ranks} ranks` : '', style: TONE.muted },
    { text: run.straggler === null ? '' : `rank ${run.straggler.subject.rank} is slow`, style: TONE.warning },
  ]
}

/** NaN and Infinity are what one looks for. */
function brokenTone(value: number | null, normal: Style = TONE.text): Style {
  return value !== null && !Number.isFinite(value) ? TONE.critical | BOLD : normal
}

function memory(run: RunData, at: number, ascii: boolean, width: number): Span[] {
  const { step } = run
  const isQuiet = run.outcome === null && run.quietMs > QUIET_MS
  return [
    run.outcome === null
      ? { text: '' }
      : {
          text: run.outcome === 'success' ? 'ended' : `ended: ${run.outcome}`,
          style: run.outcome === 'success' ? TONE.good : TONE.critical,
        },
    { text: isQuiet ? `no step for ${formatAge(run.quietMs)}` : '', style: TONE.warning },
    ...(run.stall ? [{ text: stallText(run.stall), style: severityTone(run.stall.severity) | BOLD }] : []),
    run.leak ? { text: leakText(run.leak), style: severityTone(run.leak.severity) | BOLD } : { text: '' },
    oomSpan(run, at),
    ...phaseSpans(run, ascii, width),
    { text: allocator(step.memoryAllocatedBytes, step.memoryReservedBytes), style: TONE.muted },
    { text: step.memoryPeakAllocatedBytes === null ? '' : `peak ${shortBytes(step.memoryPeakAllocatedBytes)}`, style: TONE.muted },
    { text: run.leak ? '' : 'no leak', style: TONE.muted },
    { text: run.oom ? '' : 'no OOM ahead', style: TONE.muted },
    { text: `lr ${formatFigure(step.learningRate)}`, style: TONE.muted },
    { text: `grad ${formatFigure(step.gradientNorm)}`, style: brokenTone(step.gradientNorm, TONE.muted) },
    { text: step.oomCount === null || step.oomCount === 0 ? '' : `${step.oomCount} OOMs`, style: TONE.critical },
    { text: step.allocRetries === null || step.allocRetries === 0 ? '' : `${step.allocRetries} alloc retries`, style: TONE.warning },
  ]
}

const PHASE_LETTERS: Readonly<Record<string, string>> = {
  data: 'D',
  copy: 'H',
  forward: 'F',
  forward_backward: 'W',
  backward: 'B',
  sync: 'S',
  optimizer: 'O',
  logging: 'L',
  evaluation: 'E',
  checkpoint: 'C',
}

/** A step as a bar of letters, one per phase, and the share of the largest: `DDFFFFBBBBBBO·· 45% backward`. */
function phaseSpans({ phases }: RunData, ascii: boolean, width: number): Span[] {
  const [largest] = [...phases].sort((a, b) => b.ratio - a.ratio)
  if (!largest) return []
  const cells = width < 100 ? 10 : 20
  let bar = ''
  let sum = 0
  for (const { phase, ratio } of phases) {
    sum += ratio
    const letter = PHASE_LETTERS[phase] ?? (phase === NOT_ATTRIBUTED ? (ascii ? '.' : '·') : '?')
    bar += letter.repeat(Math.max(0, Math.round(sum * cells) - bar.length))
  }
  const waits = phases.find(({ phase, ratio }) => (phase === 'data' || phase === 'copy' || phase === 'sync') && ratio >= WAIT_RATIO)
  const told = waits ?? largest
  return [{ text: `${bar} ${formatPercent(told.ratio)} ${told.phase}`, style: waits ? TONE.warning : TONE.muted }]
}

/** With the line where it was recorded; the finding says the rest. */
function leakText({ evidence: { line } }: Finding): string {
  return typeof line === 'string' ? `LEAK ${printable(line)}` : 'LEAK'
}

/** With the place where it stands once that is known; the finding names the ranks. */
function stallText({ evidence: { place, culprit_ranks } }: Finding): string {
  if (typeof place !== 'string') return 'STALLED'
  return `HANGS${typeof culprit_ranks === 'string' ? ` rank ${culprit_ranks}` : ''} ${printable(place)}`
}

function allocator(allocated: Reading, reserved: Reading): string {
  return allocated === null ? 'allocator N/A' : `alloc ${shortBytes(allocated)}/${shortBytes(reserved)}`
}

function oomSpan({ oom }: RunData, at: number): Span {
  if (!oom) return { text: '' }
  const when = oom.predictedAt === null ? '' : ` in ${formatAge(Math.max(0, oom.predictedAt - at))}`
  return { text: `OOM${when} (${oom.riskLevel ?? oom.severity})`, style: severityTone(oom.severity) | BOLD }
}
