/** One run: what it is, its course, and what was found about it. Kept up to date by the stream. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { CURVE_FIELDS } from '../../../../src/core/curve-fields.ts'
import type { Finding, TrainingStep } from '../../../../src/core/model.ts'
import type { FindingsAnswer, RunAnswer, StepsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { stepLog } from '../../live/step-log.ts'
import { epoch, findings, onEvent, runs } from '../../live/store.ts'
import { type Polled, usePolled } from '../../poll.ts'
import { curveOfAnswer, curveOfSteps, EMPTY_CURVE, type RunCurve, withSteps } from './curve.ts'
import { joinedFindings } from './run-marks.ts'

const FACTS_MS = 5000
const CURVE_MS = 30_000
const FINDINGS_MS = 30_000
const PUBLISH_MS = 900
const MOST_LATER = 3000

export function runPath(id: string): string {
  return `/api/v1/runs/${encodeURIComponent(id)}`
}

/** null: not heard of the agent yet. The agent is asked only for runs that it keeps; others are replayed or forgotten. */
export function useIsKept(id: string): boolean | null {
  return runs.value.has(id) ? true : epoch.value === 0 ? null : false
}

export function useRunFacts(id: string, isKept: boolean | null): ReadonlySignal<Polled<RunAnswer>> {
  return usePolled(isKept ? `run ${id}` : null, (signal) => ask<RunAnswer>(runPath(id), {}, { signal }), FACTS_MS)
}

export interface CurveState {
  readonly curve: RunCurve
  /** Ranks that have a curve, ascending. */
  readonly ranks: readonly number[]
  readonly rank: number
  readonly isLoading: boolean
  readonly fault: string | null
  /** The agent keeps none: these are the steps since this page was opened. */
  readonly isSeenOnly: boolean
}

/** `rank` null: the lowest. */
export function useRunCurve(id: string, rank: number | null, isKept: boolean | null, isRunning: boolean): CurveState {
  const key = `${id} ${rank ?? ''}`
  const polled = usePolled(isKept ? `curve ${key}` : null, (stop) => loadCurve(id, rank, stop), isRunning ? CURVE_MS : null).value
  const isSeenOnly = isKept === false
  const ranks = isSeenOnly ? stepLog.ranksOf(id) : (polled.answer?.ranks ?? [])
  const shownRank = rank ?? polled.answer?.rank ?? ranks[0] ?? 0
  const later = useLaterSteps(id, shownRank).value
  const curve = useMemo(() => {
    if (isSeenOnly) return curveOfSteps(stepLog.of(id, shownRank))
    return polled.answer ? withSteps(polled.answer.curve, later) : EMPTY_CURVE
  }, [polled.answer, later, isSeenOnly, id, shownRank])
  const isLoading = !isSeenOnly && polled.answer === null && polled.fault === null
  return { curve, ranks, rank: shownRank, isLoading, isSeenOnly, fault: polled.fault }
}

interface LoadedCurve {
  readonly curve: RunCurve
  readonly rank: number | null
  readonly ranks: readonly number[]
  readonly available: readonly string[]
}

export async function loadCurve(
  id: string,
  rank: number | null,
  stop: AbortSignal,
  fields: readonly string[] | null = null,
): Promise<LoadedCurve> {
  const path = `${runPath(id)}/steps`
  const wanted = (names: readonly string[]) => ({ fields: names.join(), ...(rank === null ? {} : { rank }) })
  const first = await ask<StepsAnswer>(path, wanted(fields ?? CURVE_FIELDS), { signal: stop })
  // A comma in a name cannot be asked for.
  const more = (first.available ?? []).filter((name) => !first.fields.includes(name) && !name.includes(','))
  const all =
    fields !== null || more.length === 0 ? first : await ask<StepsAnswer>(path, wanted([...first.fields, ...more]), { signal: stop })
  return { curve: curveOfAnswer(all), rank: all.rank ?? null, ranks: all.ranks ?? [], available: first.available ?? first.fields }
}

/** What the stream brought since the page is open; drawn at most once a second. */
function useLaterSteps(id: string, rank: number): ReadonlySignal<readonly TrainingStep[]> {
  const steps = useMemo(() => signal<readonly TrainingStep[]>([]), [id, rank])
  useEffect(() => {
    let waiting: TrainingStep[] = []
    let timer: ReturnType<typeof setTimeout> | null = null
    const publish = () => {
      timer = null
      steps.value = [...steps.peek(), ...waiting].slice(-MOST_LATER)
      waiting = []
    }
    const stop = onEvent((event) => {
      if (event.type === 'restart') {
        waiting = []
        steps.value = []
      }
      if (event.type !== 'steps') return
      for (const step of event.steps) if (step.run === id && step.rank === rank) waiting.push(step)
      if (waiting.length > 0) timer ??= setTimeout(publish, PUBLISH_MS)
    })
    return () => {
      stop()
      if (timer !== null) clearTimeout(timer)
    }
  }, [steps])
  return steps
}

export function useRunFindings(id: string): readonly Finding[] {
  const active = findings.value.filter(({ subject }) => subject.run === id)
  const news = active.map(({ fingerprint }) => fingerprint).join()
  const polled = usePolled(
    `findings ${id} ${news}`,
    (stop) => ask<FindingsAnswer>('/api/v1/findings/history', { run: id, limit: 200 }, { signal: stop }),
    FINDINGS_MS,
  )
  return joinedFindings(polled.value.answer?.findings ?? [], active)
}
