/** The ranks of a run side by side. */
import { formatPercent, formatSeconds, formatWhole, printable } from '../core/format.ts'
import { clockReasons, isThrottled, temperatureTone } from '../core/gpu-words.ts'
import { isGpuOfRun } from '../core/known/about-gpu.ts'
import type { TrainingStep } from '../core/model.ts'
import { phasesOf, sharesOf, wholeSeconds } from '../core/step-phases.ts'
import { box, scrolled } from './box.ts'
import { BOLD, type Style, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import type { RunData, ScreenData } from './screen-data.ts'
import { padEnd } from './text-width.ts'
import { shortBytes } from './words.ts'

const WIDE = 110
const COLUMNS = ['rank', 'step', 'time', 'phase', 'tensors', 'GPU', 'heat', 'clocks', 'host mem'] as const
const WIDTHS = [6, 9, 10, 20, 10, 8, 8, 16, 10] as const

type Cell = readonly [text: string, style?: Style]

export function drawRanks(painter: Painter, data: ScreenData, id: string, offset: number): void {
  const wide = Math.min(WIDE, painter.grid.width - 4)
  const run = data.runs.find((one) => one.id === id)
  const head = COLUMNS.map((name, index) => ({ text: padEnd(name, WIDTHS[index] ?? 0), style: TONE.muted | BOLD }))
  const rows = run ? run.rankSteps.map((step) => rankCells(run, step, data)) : []
  const lines: Span[][] = [
    head,
    ...rows.map((cells) => cells.map(([text, style = TONE.text], index) => ({ text: padEnd(text, WIDTHS[index] ?? 0), style }))),
    ...(run && run.straggler !== null ? [[], [{ text: printable(run.straggler.message), style: TONE.warning }]] : []),
  ]
  scrolled(painter, box(painter, `Ranks of ${run ? printable(run.name) : id}`, wide, lines.length), lines, offset)
}

function rankCells(run: RunData, step: TrainingStep, data: ScreenData): readonly Cell[] {
  const place = run.places.find(({ rank }) => rank === step.rank)
  const isHere = !place?.host || place.host === data.hostname
  const gpu = isHere && place?.gpu != null ? data.gpus.find(({ view }) => isGpuOfRun(view.info, place.gpu ?? ''))?.view : undefined
  const process = isHere ? data.processes.find(({ pid }) => pid === place?.pid) : undefined
  const celsius = gpu?.sample?.temperatureCelsius ?? null
  const reasons = gpu?.sample?.clockEventReasons ?? null
  const isSlow = reasons !== null && isThrottled(reasons)
  const { straggler } = run
  return [
    [String(step.rank), straggler?.subject.rank === step.rank ? TONE.warning | BOLD : TONE.text],
    [String(step.step)],
    [formatSeconds(step.stepSeconds)],
    [phaseText(step)],
    [shortBytes(step.memoryAllocatedBytes), TONE.muted],
    [gpu?.info.label ?? place?.gpu ?? 'N/A', TONE.muted],
    [formatWhole(celsius, '°C'), gpu && temperatureTone(celsius, gpu.info) === 'critical' ? TONE.critical : TONE.muted],
    [isSlow ? (clockReasons(reasons)[0]?.short ?? 'slowed down') : reasons === null ? 'N/A' : 'full', isSlow ? TONE.warning : TONE.muted],
    [shortBytes(process?.info?.residentBytes ?? null), TONE.muted],
  ]
}

/** The largest phase of the latest step: `41% data`. */
function phaseText(step: TrainingStep): string {
  const phases = phasesOf(step)
  if (phases === null) return 'N/A'
  const [largest] = [...sharesOf(phases, wholeSeconds(step, phases))].sort((a, b) => b.ratio - a.ratio)
  return largest ? `${formatPercent(largest.ratio)} ${largest.phase}` : 'N/A'
}
