/**
 * A call on a network disk whose server is gone does not fail, it never returns, and keeps one of Node's four threads for files and names.
 * So file work goes through lanes with one call each: a dead disk holds one thread per lane, and mail and web hooks still work.
 */

/** A call this long is a fault. Senders of training steps wait 5 s for an answer. */
export const STUCK_MS = 3000
/** At exit neither a prompt nor systemd should wait for a dead disk. */
export const STUCK_AT_END_MS = 1500

export class DiskStuck extends Error {
  constructor(waitedMs: number, path: string) {
    super(`the disk has not responded for ${Math.round(waitedMs / 1000)} s (${path})`)
    this.name = 'DiskStuck'
  }
}

export class DiskLane {
  readonly #queue: (() => void)[] = []
  #startedAt: number | null = null
  #path = ''

  /** Starts at once when the lane is free, else in turn. Each caller has one call here at a time, so the queue is bounded. */
  run<T>(path: string, call: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const begin = () => {
        this.#startedAt = performance.now()
        this.#path = path
        // An argument that Node refuses throws at once: the lane must go on then, too.
        ;(async () => call())()
          .finally(() => this.#next())
          .then(resolve, reject)
      }
      if (this.#startedAt === null) begin()
      else this.#queue.push(begin)
    })
  }

  /** How long the current call has waited; 0: none. */
  waitedMs(): number {
    return this.#startedAt === null ? 0 : performance.now() - this.#startedAt
  }

  stuck(limitMs = STUCK_MS): DiskStuck | null {
    const waitedMs = this.waitedMs()
    return waitedMs < limitMs ? null : new DiskStuck(waitedMs, this.#path)
  }

  /** Rejects with DiskStuck when a call takes `limitMs`, at once if it already has; the work itself goes on. */
  patiently<T>(work: () => Promise<T>, limitMs = STUCK_MS): Promise<T> {
    const fault = this.stuck(limitMs)
    if (fault) return Promise.reject(fault)
    return new Promise<T>((resolve, reject) => {
      let timer: NodeJS.Timeout
      const look = () => {
        const late = this.stuck(limitMs)
        if (late) reject(late)
        else timer = setTimeout(look, Math.max(1, limitMs - this.waitedMs()))
      }
      timer = setTimeout(look, limitMs)
      work()
        .finally(() => clearTimeout(timer))
        .then(resolve, reject)
    })
  }

  #next(): void {
    this.#startedAt = null
    this.#queue.shift()?.()
  }
}

/** The log folder, and all below it. */
export const logLane = new DiskLane()
/** The alert journal must not wait behind a sync of the disk. */
export const journalLane = new DiskLane()
/** Where the agent announces itself: a runtime folder, or a home. */
export const homeLane = new DiskLane()

/** Epoch ms since when a folder of the agent has not responded; null: all do. */
export function stuckSince(): number | null {
  const waitedMs = Math.max(logLane.waitedMs(), journalLane.waitedMs())
  return waitedMs < STUCK_MS ? null : Date.now() - Math.round(waitedMs)
}

/** Whether a stuck call will keep this process from ending. */
export function isHeldByDisk(): boolean {
  return [logLane, journalLane, homeLane].some((lane) => lane.stuck(STUCK_AT_END_MS) !== null)
}
