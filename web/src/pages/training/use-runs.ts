import { computed, type ReadonlySignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { RunsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { present } from '../../live/present.ts'
import { latestSteps, playback } from '../../live/store.ts'
import { type Polled, usePolled } from '../../poll.ts'
import { type RunRow, runRows } from './run-rows.ts'

const REFRESH_MS = 5000

export interface RunsState {
  /** null: not heard of the agent yet. */
  readonly rows: readonly RunRow[] | null
  readonly fault: string | null
}

export function useRuns(): ReadonlySignal<RunsState> {
  const polled: ReadonlySignal<Polled<RunsAnswer>> = usePolled(
    'runs',
    (signal) => ask<RunsAnswer>('/api/v1/runs', {}, { signal }),
    REFRESH_MS,
  )
  return useMemo(
    () =>
      computed(() => {
        const { answer, fault } = polled.value
        return { rows: answer && runRows(answer.runs, latestSteps.value, present(), playback.value?.state === 'ended'), fault }
      }),
    [polled],
  )
}
