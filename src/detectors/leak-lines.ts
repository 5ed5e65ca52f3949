/** The lines that SDKs recorded to leak, for the findings about their runs. */
import { BoundedMap } from '../core/bounded-map.ts'
import { rankKey } from '../core/memory/run-map.ts'
import type { FindingSubject, Run, RunLeakLine } from '../core/model.ts'

const CAP = 64

export class LeakLines {
  readonly #lines = new BoundedMap<string, RunLeakLine>(CAP, { isRenewed: true })

  note({ id, leakLines, endedAt }: Run): void {
    for (const line of leakLines ?? []) {
      const key = line.isHost ? `host ${id}` : rankKey(id, line.rank)
      if (endedAt === null) this.#lines.set(key, line)
      else this.#lines.delete(key)
    }
  }

  /** null: none that was recorded since then. A run without a rank is about its host memory. */
  of({ run, rank }: Pick<FindingSubject, 'run' | 'rank'>, since: number): RunLeakLine | null {
    const line = run === null ? undefined : this.#lines.get(rank === null ? `host ${run}` : rankKey(run, rank))
    return line && line.at >= since ? line : null
  }

  snapshot(): unknown {
    return this.#lines.saved()
  }

  /** An earlier version kept none. */
  restore(saved: unknown): void {
    this.#lines.load(saved ?? [])
  }
}
