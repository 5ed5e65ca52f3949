import { formatAge, formatDuration } from '../core/format.ts'
import type { SourceHealth } from '../core/model.ts'

export interface Readiness {
  readonly status: 'ready' | 'not_ready'
  readonly reasons: string[]
}

/** The host's own readings go on without the GPU driver, so they do not make a GPU monitor ready. */
const BESIDE_THE_GPUS = 'host'

/** Ready once a GPU source, or the host of a machine without GPUs, is ok and its last sample is not overdue: younger than one interval plus the deadline of a read. */
export function readiness(sources: readonly SourceHealth[], now: number): Readiness {
  const gpuSources = sources.filter(({ source }) => source !== BESIDE_THE_GPUS)
  // A machine without a GPU: there is nothing else to wait for.
  const reasons = (gpuSources.length === 0 ? sources : gpuSources).map((source) => reasonOf(source, now))
  if (reasons.length === 0) return { status: 'not_ready', reasons: ['no source has reported yet'] }
  // What can be read is served; what cannot is named.
  return { status: reasons.includes(null) ? 'ready' : 'not_ready', reasons: reasons.filter((reason) => reason !== null) }
}

/** Why this source delivers nothing; null when it does. */
export function reasonOf(
  { source, state, since, message, lastSampleAt, intervalMs, deadlineMs }: SourceHealth,
  now: number,
): string | null {
  if (state !== 'ok') {
    const detail = message === null ? '' : `: ${message}`
    return `${source} has been ${state} since ${new Date(since).toISOString()}${detail}`
  }
  if (lastSampleAt === null) return `${source} has not delivered a sample yet`
  const ageMs = now - lastSampleAt
  if (ageMs <= intervalMs + deadlineMs) return null
  return `the last sample of ${source} is ${formatAge(ageMs)} old, expected at most ${formatDuration(intervalMs + deadlineMs)}`
}
