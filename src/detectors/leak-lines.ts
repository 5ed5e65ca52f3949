/** The lines that SDKs recorded to leak, for the findings about their runs. */
import { BoundedMap } from '../core/bounded-map.ts'
import { rankKey } from '../core/memory/run-map.ts'
import type { Run, RunLeakLine } from '../core/model.ts'

const CAP = 64

export class LeakLines {
  readonly #lines = new BoundedMap<string, RunLeakLine>(CAP, { isRenewed: true })

  note({ id, leakLines, endedAt }: Run): void {
    for (const line of leakLines ?? []) {
      if (endedAt === null) this.#lines.set(rankKey(id, line.rank), line)
      else this.#lines.delete(rankKey(id, line.rank))
    }
  }

  /** null: none that was recorded since then. */
  of(run: string | null, rank: number | null, since: number): RunLeakLine | null {
    const line = run === null || rank === null ? undefined : this.#lines.get(rankKey(run, rank))
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
