/**
 * A network disk whose server is gone never answers: a call there does not fail, it does not return. Node has four threads for all file
 * work and for looking up names, and each such call keeps one of them. So what the agent does in its folders goes through lanes, with one
 * call under way in each: a dead disk holds one thread per lane, and mail and web hooks still find their servers.
 */
import { formatAge } from './format.ts'

/** A call that takes this long is a fault of its own. Senders of training steps wait 5 s for an answer. */
export const STUCK_MS = 3000
/** When the program ends: whoever waits at a prompt, or systemd, is not to wait for a dead disk. */
export const STUCK_AT_END_MS = 1500

export class DiskStuck extends Error {
  constructor(waitedMs: number, path: string) {
    super(`the disk has not answered for ${formatAge(waitedMs)} (${path})`)
    this.name = 'DiskStuck'
  }
}

export class DiskLane {
  readonly #queue: (() => void)[] = []
  #startedAt: number | null = null
  #path = ''

  /** Begins at once when the lane is free, else in its turn. Whoever calls has one call here at a time: so what waits is bounded. */
  run<T>(path: string, call: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const begin = () => {
        this.#startedAt = performance.now()
        this.#path = path
        // An argument that Node refuses throws at once: the lane goes on then, too.
        ;(async () => call())()
          .finally(() => this.#next())
          .then(resolve, reject)
      }
      if (this.#startedAt === null) begin()
      else this.#queue.push(begin)
    })
  }

  /** How long the call under way has gone without an answer; 0 when there is none. */
  waitedMs(): number {
    return this.#startedAt === null ? 0 : performance.now() - this.#startedAt
  }

  /** The fault, when the call under way has taken `limitMs` already. */
  stuck(limitMs = STUCK_MS): DiskStuck | null {
    const waitedMs = this.waitedMs()
    return waitedMs < limitMs ? null : new DiskStuck(waitedMs, this.#path)
  }

  /** Rejects with DiskStuck when a call has no answer for `limitMs`, at once where that is so already; the work itself goes on. */
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
/** The lines of the alerts' journal: they must not wait behind a sync of the disk. */
export const journalLane = new DiskLane()
/** Where the agent says that it is there: a runtime folder, or somebody's home. */
export const homeLane = new DiskLane()

/** Since when a folder of the agent has not answered, in epoch ms; null: all do. */
export function stuckSince(): number | null {
  const waitedMs = Math.max(logLane.waitedMs(), journalLane.waitedMs())
  return waitedMs < STUCK_MS ? null : Date.now() - Math.round(waitedMs)
}

/** Whether a call is under way that will keep this process from ending. */
export function isHeldByDisk(): boolean {
  return [logLane, journalLane, homeLane].some((lane) => lane.stuck(STUCK_AT_END_MS) !== null)
}
