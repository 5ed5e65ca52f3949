/** The finding about a run that died: one sentence, and its evidence. */
import { formatDuration } from '../core/format.ts'
import type { Run, RunOutcome } from '../core/model.ts'
import type { FindingDraft } from './finding.ts'

/** What was known about a run while it lived. */
export interface LivedRun {
  run: Run | null
  lastStep: number | null
  lastStepAt: number | null
  /** The first forecast that memory would run out. */
  forecast: { readonly saidAt: number; readonly predictedAt: number } | null
  /** The first step with a NaN loss, and the earliest in which it may have begun. */
  nan: { readonly shown: number; readonly earliest: number } | null
}

/** Something near the death that may be its cause. */
export interface Clue {
  readonly at: number
  readonly gpu: string | null
  readonly gpuIndex: number | null
  readonly pid: number | null
  /** The machine it happened on; without a PID, a shutdown of it: that explains only runs that were killed. */
  readonly host?: string | null
  readonly text: string
}

const ADVICE: Readonly<Record<Exclude<RunOutcome, 'success'>, readonly string[]>> = {
  oom: ['Run gpuwarden report: it names the cause, the line, and what held the memory.'],
  nan: ['Resume from the last checkpoint before that step; lower the learning rate or clip gradients.'],
  killed: ['Find out who killed it: the scheduler, the kernel (dmesg), or a user.'],
  failed: ['Check its output for the exception, then resume from the last checkpoint.'],
}

/** The kernel killed it because memory of the host ran out. */
const MEMORY_ADVICE = [
  'Give it more memory of the host, or make it need less: fewer data loader workers, smaller caches, nothing kept from step to step.',
]

export function deathDraft(lived: LivedRun, run: Run, endedAt: number, clues: readonly Clue[]): FindingDraft {
  const { id, startedAt, ending } = run
  const isAsked = ending?.isAsked === true && clues.length === 0
  const outcome = run.outcome === null || run.outcome === 'success' ? 'failed' : run.outcome
  const lead = lived.forecast === null ? null : endedAt - lived.forecast.saidAt
  const said = outcome === 'oom' && lead !== null && lead > 0 ? ` (forecast ${formatDuration(lead)} before)` : ''
  const step = lived.lastStep === null ? '' : ` at step ${lived.lastStep.toLocaleString('en-US')}`
  const verb = isAsked ? 'was stopped' : 'died'
  return {
    severity: isAsked ? 'warning' : 'critical',
    message: `Run ${id} ${verb} after ${formatDuration(endedAt - startedAt)}${step}: ${causeOf(lived, run, clues)}${said}.`,
    evidence: {
      outcome,
      pid: run.pid,
      step: lived.lastStep,
      lived_seconds: Math.round((endedAt - startedAt) / 1000),
      ended_at: endedAt,
      message: ending?.message ?? null,
      cause: ending?.cause ?? null,
      place: ending?.place ?? null,
      asked_for: isAsked,
      seen_by_nobody: ending?.isPresumed ?? false,
      also_seen: clues.map((clue) => clue.text).join('; ') || null,
      forecast_seconds_before: lead === null ? null : Math.round(lead / 1000),
      forecast_error_seconds:
        lived.forecast === null || outcome !== 'oom' ? null : Math.round((endedAt - lived.forecast.predictedAt) / 1000),
    },
    confidence: ending?.isPresumed ? 0.8 : 1,
    advice: isAsked ? [] : clues.some(({ pid }) => pid !== null) ? MEMORY_ADVICE : ADVICE[outcome],
  }
}

function causeOf({ nan }: LivedRun, { outcome, ending }: Run, clues: readonly Clue[]): string {
  const hardware = clues.length === 0 ? '' : clues[0]?.text
  const said = ending?.message ? firstLine(ending.message) : null
  if (outcome === 'oom') {
    const why = ending?.cause ? `, ${ending.cause}` : ''
    return `out of GPU memory${why}${ending?.place ? ` from ${ending.place}` : ''}`
  }
  if (hardware) return said === null ? hardware : `${hardware} (${said})`
  if (outcome === 'nan') return nan === null ? 'its loss was NaN' : `its loss was NaN from ${stepsOf(nan)} on`
  if (said !== null) return said
  return outcome === 'killed' ? 'it was killed' : 'it ended with an error'
}

function stepsOf({ shown, earliest }: { readonly shown: number; readonly earliest: number }): string {
  const [from, to] = [earliest.toLocaleString('en-US'), shown.toLocaleString('en-US')]
  return earliest < shown ? `a step between ${from} and ${to}` : `step ${to}`
}

const LONGEST = 200

function firstLine(text: string): string {
  const line = text.split('\n', 1)[0]?.trim() ?? ''
  return (line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line).replace(/[.:\s]+$/, '')
}
