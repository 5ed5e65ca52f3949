/** A recording that is played: where it is, and what can be asked of it. */
export interface PlaybackState {
  readonly state: 'playing' | 'paused' | 'seeking' | 'ended'
  /** The moment that was played last; null before the first. */
  readonly at: number | null
  /** null: as fast as it goes. */
  readonly speed: number | null
  /** Completed jumps to another moment. A screen asks for everything again after each. */
  readonly jumps: number
}

/** What is left out stays as it is. */
export interface PlaybackCommand {
  readonly playing?: boolean | undefined
  readonly speed?: number | undefined
  /** Go to this moment. */
  readonly at?: number | undefined
}

/** Something to find on the time line. */
export interface PlaybackMark {
  readonly at: number
  readonly severity: 'info' | 'warning' | 'critical'
  /** The detector; `run_ended` for a run that ended well. */
  readonly kind: string
  readonly message: string
  readonly run: string | null
}
