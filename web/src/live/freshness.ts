/** What to say of readings that may not be shown as current. A stale value never looks live. */
import type { GpuView } from '../../../src/core/kinds.ts'
import type { GpuSample, SourceHealth } from '../../../src/core/model.ts'

export type Freshness =
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting' }
  /** `since` in the agent's time; null where it is not known. */
  | {
      readonly kind: 'unreachable' | 'not_responding' | 'stale' | 'lost' | 'trouble'
      readonly words: string
      readonly since: number | null
    }

const STATES: Readonly<Record<Exclude<GpuSample['state'], 'ok' | 'no_driver'>, string>> = {
  lost: 'Lost: the GPU fell off the bus',
  reset_required: 'The driver asks for a reset of this GPU',
  suspended: 'Suspended: asleep, not woken',
  error: 'This GPU could not be read',
}

/** `isLinked`: whether this page hears the agent. */
export function freshnessOf(isLinked: boolean, health: SourceHealth | null, { sample, live }: Pick<GpuView, 'sample' | 'live'>): Freshness {
  if (!isLinked && sample) return { kind: 'unreachable', words: 'No connection to the agent: these are its last readings', since: null }
  if (sample?.state === 'no_driver') return { kind: 'trouble', words: `No driver: ${sample.stateReason ?? ''}`, since: null }
  if (health && (health.state === 'not_responding' || health.state === 'crashed' || health.state === 'failed')) {
    // The age of the readings says for how long; the message only knows the beginning.
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
  // A recording is shown as it was at its moment, whether it is paused or over: nothing of it grows old.
  return live || health?.provenance === 'replay' ? { kind: 'live' } : { kind: 'stale', words: 'No new readings', since: null }
}
