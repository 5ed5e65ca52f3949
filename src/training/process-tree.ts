/** A process and all its descendants, also orphans. Linux only; elsewhere the process alone. */
import { readdirSync, readFileSync } from 'node:fs'
import { startTicksOf } from '../core/process-identity.ts'

/** Children are listed by the thread that made them; few programs fork from more threads than this. */
const MOST_THREADS = 64
const MOST_PROCESSES = 4096

export class ProcessTree {
  /** PID → start time: a later process with the same PID is not in the tree. */
  readonly #known = new Map<number, number | null>()

  constructor(root: number) {
    this.#known.set(root, startTicksOf(root))
  }

  pids(): ReadonlySet<number> {
    const alive = new Set<number>()
    const queue = [...this.#known.keys()]
    for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
      if (alive.has(pid) || alive.size >= MOST_PROCESSES) continue
      const start = startTicksOf(pid)
      if (start === null || (this.#known.get(pid) ?? start) !== start) {
        if (this.#known.size > 1) this.#known.delete(pid)
        continue
      }
      this.#known.set(pid, start)
      alive.add(pid)
      queue.push(...childrenOf(pid))
    }
    return alive
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .slice(0, MOST_THREADS)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number))
  } catch {
    // It ended during the look, or this kernel does not list children.
    return []
  }
}
