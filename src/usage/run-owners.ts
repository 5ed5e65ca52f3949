/** Which run a process on a GPU belongs to. */
import { BoundedMap } from '../core/bounded-map.ts'
import { isGpuOfRun } from '../core/known/about-gpu.ts'
import type { GpuInfo, ProcessView, Run } from '../core/model.ts'

const MOST_RUNS = 500
/** A run begins some time after its process: it imports, loads and compiles first. */
const BEFORE_RUN_MS = 30 * 60_000

export class RunOwners {
  readonly #open = new BoundedMap<string, Run>(MOST_RUNS)
  /** Changes with the runs. */
  version = 0

  accept(run: Run): void {
    this.version++
    if (run.endedAt === null) this.#open.set(run.id, run)
    else this.#open.delete(run.id)
  }

  /** By its process or that process' children first, then by the GPUs that the run names, if its user holds them; the latest one counts. */
  find({ pid, info }: ProcessView, gpu: GpuInfo, user: string): Run | null {
    if (this.#open.size === 0) return null
    let byGpu: Run | null = null
    for (const run of this.#open.values()) {
      if ((run.provenance === 'simulated') !== (gpu.provenance === 'simulated')) continue
      if (run.pid !== null && (run.pid === pid || run.pid === info?.parentPid)) return run
      if (run.user !== null && run.user !== user) continue
      // Whoever was there long before the run began is another process.
      const isBefore = info?.startedAt != null && info.startedAt < run.startedAt - BEFORE_RUN_MS
      if (!isBefore && run.gpus.some((name) => isGpuOfRun(gpu, name)) && (byGpu === null || run.startedAt > byGpu.startedAt)) byGpu = run
    }
    return byGpu
  }
}
