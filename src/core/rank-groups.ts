/** Which ranks do the same work, as they say in custom figures. Needs neither Node.js nor a package. */
import type { Reading, TrainingStep } from './model.ts'

type Told = Pick<TrainingStep, 'custom'>

/** Stage of a pipeline. */
export const PIPELINE_STAGE = 'pipeline_stage'
/** Number of the tensor-parallel group. */
export const TENSOR_GROUP = 'tensor_group'
/** Place within the tensor-parallel group. */
export const TENSOR_RANK = 'tensor_rank'
export const TOKENS_PER_SECOND = 'tokens_per_second'

/** Ranks of different groups are not compared with each other; null: this step does not say. */
export function groupOf({ custom }: Told): string | null {
  const stage = custom?.[PIPELINE_STAGE]
  const group = custom?.[TENSOR_GROUP]
  return stage === undefined && group === undefined ? null : `${stage ?? ''}/${group ?? ''}`
}

export function tokensPerSecond({ custom }: Told): Reading {
  return custom?.[TOKENS_PER_SECOND] ?? null
}
