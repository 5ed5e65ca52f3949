/** Recognizes a caching allocator that hit the limit: memory was nearly full, and a large part is freed between two samples. */
export interface FlushInput {
  /** Highest share of capacity in use since the last flush, fading. */
  readonly before: number
  readonly now: number
  /** Time since the sample before. */
  readonly quietMs: number
  /** Share of capacity that must be freed at once. */
  readonly least?: number
  /** No process is left: then memory was freed because its owner ended. */
  readonly empty: boolean
}

const NEARLY_FULL = 0.9
const GIVEN_BACK = 0.12
/** A gap this long could hide anything. */
const GAP_MS = 30_000
/** Share by which the remembered peak sinks with each sample: freeing slowly is no flush. */
const FADE = 0.25

export function flushed({ before, now, quietMs, empty, least = GIVEN_BACK }: FlushInput): {
  readonly happened: boolean
  readonly top: number
} {
  if (empty || quietMs > GAP_MS || quietMs < 0) return { happened: false, top: now }
  if (before >= NEARLY_FULL && before - now >= least) return { happened: true, top: now }
  return { happened: false, top: now >= before ? now : before - FADE * (before - now) }
}
