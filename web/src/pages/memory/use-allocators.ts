/** The allocators on a GPU: from the stream, and for runs that have not taken a step since this page was opened, from the agent's memory. */

import { computed, type ReadonlySignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { ALLOCATOR_FIELDS } from '../../../../src/core/curve-fields.ts'
import type { TrainingStep } from '../../../../src/core/model.ts'
import type { StepsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { rankKey } from '../../live/step-log.ts'
import { allRuns, gpus, runs } from '../../live/store.ts'
import { usePolled } from '../../poll.ts'
import { factsOf } from '../../run-gpu.ts'
import { columnOf, curveOfAnswer, type RunCurve } from '../training/curve.ts'
import { type Allocator, allocatorsOn } from './allocators.ts'

const MOST_ASKED = 16
const MEMORY_FIELDS = ['stepSeconds', ...ALLOCATOR_FIELDS] as const

export function useAllocators(cell: GpuCell): ReadonlySignal<readonly Allocator[]> {
  const wanted = [...runs.value.values()]
    .filter(({ endedAt }) => endedAt === null)
    .slice(0, MOST_ASKED)
    .map(({ id }) => id)
  const asked = usePolled(wanted.length === 0 ? null : wanted.join(), (stop) => lastSteps(wanted, stop), null)
  return useMemo(
    () =>
      computed(() => {
        const steps = new Map((asked.value.answer ?? []).map((step) => [rankKey(step.run, step.rank), step]))
        for (const run of allRuns()) for (const step of run.steps.values()) steps.set(rankKey(run.id, step.rank), step)
        return allocatorsOn(cell.id, [...steps.values()], runs.value, gpus.value.map(factsOf))
      }),
    [cell, asked],
  )
}

async function lastSteps(ids: readonly string[], stop: AbortSignal): Promise<readonly TrainingStep[]> {
  const answers = await Promise.all(
    ids.map((id) => ask<StepsAnswer>(`/api/v1/runs/${encodeURIComponent(id)}/steps`, { fields: MEMORY_FIELDS.join() }, { signal: stop })),
  )
  return answers.flatMap((answer) => lastStep(answer.id, answer.rank ?? 0, curveOfAnswer(answer)) ?? [])
}

function lastStep(run: string, rank: number, curve: RunCurve): TrainingStep | null {
  const step = curve.steps.at(-1)
  const at = curve.at.at(-1)
  if (step === undefined || at === undefined) return null
  // Reported only every few steps: the last report counts.
  const last = (field: (typeof MEMORY_FIELDS)[number]) => columnOf(curve, field)?.findLast((value) => value !== null) ?? null
  const unsaid = {
    epoch: null,
    loss: null,
    learningRate: null,
    gradientNorm: null,
    throughputPerSecond: null,
    phaseSeconds: null,
    custom: null,
  }
  const figures = Object.fromEntries(MEMORY_FIELDS.map((field) => [field, last(field)])) as Pick<
    TrainingStep,
    (typeof MEMORY_FIELDS)[number]
  >
  return { kind: 'step', run, rank, step, at, ...unsaid, ...figures }
}
