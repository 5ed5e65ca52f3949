/** What was known of recorded runs at each moment of their recording. */
import { NO_HANG, OPEN, type RunRecord } from './run-record.ts'

/** The ending of a run may be reported just after the last sample. */
const AFTER_END_MS = 60_000

interface Change {
  readonly at: number
  readonly run: RunRecord
}

export class RunTimeline {
  readonly #changes: readonly Change[]
  readonly #endedAt: ReadonlyMap<string, number>
  #next = 0
  #firstAt: number | null = null
  #lastAt = Number.NEGATIVE_INFINITY

  constructor(records: readonly RunRecord[]) {
    this.#endedAt = new Map(records.flatMap(({ id, endedAt }) => (endedAt === null ? [] : [[id, endedAt] as const])))
    this.#changes = records
      .flatMap((run): Change[] => [
        { at: run.startedAt, run: { ...run, ...OPEN, ...NO_HANG, report: null, recordings: [] } },
        ...[...run.recordings, ...(run.hang ? [run.hang] : [])].map(({ at }) => ({
          at,
          run: {
            ...run,
            ...OPEN,
            ...(at < (run.hang?.at ?? at) ? NO_HANG : {}),
            report: null,
            recordings: run.recordings.filter((one) => one.at <= at),
          },
        })),
        ...(run.endedAt === null ? [] : [{ at: run.endedAt, run }]),
      ])
      .sort((a, b) => a.at - b.at)
  }

  has(id: string): boolean {
    return this.#changes.some(({ run }) => run.id === id)
  }

  /** What changed since the moment before. Runs that ended before the first moment are left out. */
  moveTo(at: number): readonly RunRecord[] {
    this.#firstAt ??= at
    this.#lastAt = Math.max(this.#lastAt, at)
    return this.#until(at)
  }

  /** The recording is over. */
  finish(): readonly RunRecord[] {
    return this.#until(this.#lastAt + AFTER_END_MS)
  }

  rewind(): void {
    this.#next = 0
    this.#firstAt = null
    this.#lastAt = Number.NEGATIVE_INFINITY
  }

  #until(at: number): readonly RunRecord[] {
    const due: RunRecord[] = []
    for (let change = this.#changes[this.#next]; change && change.at <= at; change = this.#changes[++this.#next])
      if ((this.#endedAt.get(change.run.id) ?? Number.POSITIVE_INFINITY) >= (this.#firstAt ?? 0)) due.push(change.run)
    return due
  }
}
