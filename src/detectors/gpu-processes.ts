/** Which processes each GPU had when it last listed them. */

export type GpuProcessesState = readonly (readonly [gpu: string, pids: readonly number[]])[]

export interface Departed {
  readonly pids: readonly number[]
  /** None of the earlier processes is left: what comes next is another program. */
  readonly isEveryone: boolean
}

const NOBODY: Departed = { pids: [], isEveryone: false }

export class GpuProcesses {
  readonly #pids = new Map<string, readonly number[]>()

  get size(): number {
    return this.#pids.size
  }

  has(gpu: string): boolean {
    return this.#pids.has(gpu)
  }

  note(gpu: string, processes: readonly { readonly pid: number }[]): Departed {
    const before = this.#pids.get(gpu)
    if (before !== undefined && before.length === processes.length && processes.every((one, i) => one.pid === before[i])) return NOBODY
    this.#pids.set(
      gpu,
      processes.map((one) => one.pid),
    )
    if (before === undefined) return NOBODY
    const pids = before.filter((pid) => !processes.some((one) => one.pid === pid))
    return { pids, isEveryone: pids.length === before.length }
  }

  snapshot(): GpuProcessesState {
    return [...this.#pids].map(([gpu, pids]) => [gpu, [...pids]] as const)
  }

  restore(state: GpuProcessesState): void {
    this.#pids.clear()
    for (const [gpu, pids] of state) this.#pids.set(gpu, [...pids])
  }
}
