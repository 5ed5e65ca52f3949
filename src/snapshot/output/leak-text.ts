/** The verdict on leaks, in words. */
import { formatBytes } from '../../core/format.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import type { LeakCandidate, LeakVerdict } from '../verdict/leak.ts'
import { counted, fitted, secondsText, WIDTH } from './words.ts'

const MOST_SHOWN = 5
const INNER_FRAMES = 4

/** `limitBytes`: how much memory there is for PyTorch; null where nobody said, and `hint` tells how to. */
export function leakLines(
  analysis: DeviceAnalysis,
  limitBytes: number | null,
  isDetailed: boolean,
  hint = ' (full when: --memory)',
): string[] {
  const { leak } = analysis
  if (leak.answer === 'not known')
    return [analysis.device.trace.count === 0 ? 'not known without events: compare two files' : 'not known: frees were not recorded']
  if (leak.answer === 'window too short for a verdict')
    return [`window too short for a verdict: ${counted(leak.marks, 'step')}, 6 are needed`]
  if (leak.answer === 'no leak') return [`none: no line grew in every window after warm-up (${counted(leak.marks, 'mark')})`]
  const lines: string[] = []
  for (const candidate of leak.candidates.slice(0, isDetailed ? MOST_SHOWN : 2))
    lines.push(...candidateLines(candidate, analysis, fullText(analysis, candidate.bytesPerSecond, limitBytes, hint), isDetailed))
  const more = leak.candidates.length - (isDetailed ? MOST_SHOWN : 2)
  if (more > 0) lines.push(`and ${counted(more, 'more line')}`)
  if (isDetailed) lines.push(`judged by ${basis(leak)}; the first third is warm-up`)
  return lines
}

function basis({ steps, marks }: LeakVerdict): string {
  if (steps.source === 'annotations') return `${counted(marks, 'step')} by ${fitted(steps.name ?? '', 40)}`
  return steps.source === 'repetition'
    ? `${counted(marks, 'step')} by a stack that repeats`
    : `${counted(marks, 'part')} of the window: no steps are marked`
}

function candidateLines(candidate: LeakCandidate, analysis: DeviceAnalysis, full: string, isDetailed: boolean): string[] {
  const { line, bytesPerStep, bytesPerSecond, survivingBlocks, survivingBytes, heldBytes, survivors, freedMedianSteps, stack } = candidate
  const unit = analysis.steps.source === 'equal parts' ? 'part' : 'step'
  const pace = bytesPerSecond === null ? '' : `, ${formatBytes(bytesPerSecond * 60)} a minute`
  const lines = [fitted(line, WIDTH - 20), `  keeps ${formatBytes(bytesPerStep)} each ${unit}${pace}; ${full}`]
  if (!isDetailed) return lines
  const freed =
    freedMedianSteps === null ? 'none was freed' : `those freed lived for ${counted(freedMedianSteps, unit)}, half of them longer`
  lines.push(
    `  made in the window and alive: ${counted(survivingBlocks, 'block')}, ${formatBytes(survivingBytes)}; with earlier ones ${formatBytes(heldBytes)}`,
    `  half of them are older than ${counted(survivors.medianSteps, unit)}, the oldest ${survivors.oldestSteps}; ${freed}`,
  )
  // Where a library allocates for the person's line, the frames below it say what for.
  if (stack.length > 2) lines.push('  last calls:', ...stack.slice(-INNER_FRAMES).map((frame) => `    ${fitted(frame, WIDTH - 20)}`))
  return lines
}

function fullText(analysis: DeviceAnalysis, bytesPerSecond: number | null, limitBytes: number | null, hint: string): string {
  if (bytesPerSecond === null || bytesPerSecond <= 0) return 'the file has no times to project it'
  if (limitBytes === null) return `1 GiB in ${secondsText(1024 ** 3 / bytesPerSecond)}${hint}`
  const room = limitBytes - analysis.curve.peak.allocatedBytes
  return room <= 0 ? 'the GPU is full' : `${formatBytes(limitBytes)} would be full in ${secondsText(room / bytesPerSecond)}`
}
