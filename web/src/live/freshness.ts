/** Whether readings may be shown as current, and what to say when not. A stale value never looks live. */
import type { GpuSample, SourceHealth } from '../../../src/core/model.ts'

export type Freshness =
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting' }
  /** `since` in the agent's time; null where it is not known. */
  | {
      readonly kind: 'unreachable' | 'not_responding' | 'stale' | 'ended' | 'lost' | 'trouble'
      readonly words: string
      readonly since: number | null
    }

export interface FreshnessInput {
  /** Whether this page hears the agent. */
  readonly isLinked: boolean
  readonly health: SourceHealth | null
  readonly sample: GpuSample | null
  readonly ageMs: number | null
}

const TRAVEL_MS = 1000
const USUAL_LIMIT_MS = 5000

const STATES: Readonly<Record<Exclude<GpuSample['state'], 'ok'>, string>> = {
  lost: 'Lost: the GPU fell off the bus',
  reset_required: 'The driver wants this GPU to be reset',
  suspended: 'Suspended: left asleep',
  error: 'This GPU could not be read',
}

export function freshnessOf({ isLinked, health, sample, ageMs }: FreshnessInput): Freshness {
  if (!isLinked && sample) return { kind: 'unreachable', words: 'No connection to the agent: these are its last words', since: null }
  if (health && (health.state === 'not_responding' || health.state === 'crashed' || health.state === 'failed')) {
    // How long it has not answered is told by the age of the readings; the message only knows the beginning.
    const words =
      health.state === 'not_responding'
        ? 'The driver is not responding'
        : (health.message ?? { crashed: 'The sampler crashed', failed: 'The driver cannot be read' }[health.state])
    return { kind: 'not_responding', words, since: health.since }
  }
  if (sample === null) return { kind: 'waiting' }
  if (sample.state !== 'ok') {
    const reason = sample.stateReason === null ? '' : ` (${sample.stateReason})`
    return { kind: sample.state === 'lost' ? 'lost' : 'trouble', words: `${STATES[sample.state]}${reason}`, since: sample.at }
  }
  if (health?.state === 'ended') return { kind: 'ended', words: 'The recording is over', since: health.since }
  // The agent's own rule, and a little for the way here.
  const limit = health ? 2 * health.intervalMs + health.deadlineMs + TRAVEL_MS : USUAL_LIMIT_MS
  if (ageMs !== null && ageMs > limit) return { kind: 'stale', words: 'No new readings', since: null }
  return { kind: 'live' }
}
