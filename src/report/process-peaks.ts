/** Peak memory of each process on each GPU; when there are very many, the largest are kept. */
import type { ProcessView, Reading } from '../core/model.ts'

const MOST = 512

export interface ProcessPeak {
  readonly gpu: string
  readonly pid: number
  readonly user: string | null
  readonly command: string | null
  readonly peakBytes: number
  readonly peakAt: number
  readonly lastBytes: number
  readonly firstSeenAt: number
  readonly lastSeenAt: number
}

interface Entry extends ProcessPeak {
  /** Unknown at first: the driver lists a PID before the host is asked about it. */
  readonly startedAt: Reading
}

export class ProcessPeaks {
  readonly #peaks = new Map<string, Entry>()
  leftOut = 0

  accept(at: number, processes: readonly ProcessView[]): void {
    for (const process of processes) {
      const { gpu, pid, memoryUsedBytes: bytes, info } = process
      if (bytes === null) continue
      const key = `${gpu} ${pid}`
      const startedAt = info?.startedAt ?? null
      let known = this.#peaks.get(key)
      if (known !== undefined && startedAt !== null && known.startedAt !== null && known.startedAt !== startedAt) {
        // The PID was reused.
        this.#peaks.set(`${key} ${known.startedAt}`, known)
        known = undefined
      }
      if (known === undefined && this.#peaks.size >= MOST) this.#makeRoom()
      const isHigher = known === undefined || bytes > known.peakBytes
      this.#peaks.set(key, {
        gpu,
        pid,
        user: info?.user ?? known?.user ?? null,
        command: info?.command?.join(' ') ?? info?.name ?? known?.command ?? null,
        peakBytes: isHigher ? bytes : (known?.peakBytes ?? bytes),
        peakAt: isHigher ? at : (known?.peakAt ?? at),
        lastBytes: bytes,
        firstSeenAt: known?.firstSeenAt ?? at,
        lastSeenAt: at,
        startedAt: startedAt ?? known?.startedAt ?? null,
      })
    }
  }

  /** Largest first. */
  of(gpu: string): ProcessPeak[] {
    return [...this.#peaks.values()].filter((one) => one.gpu === gpu).sort((a, b) => b.peakBytes - a.peakBytes)
  }

  #makeRoom(): void {
    const smallest = [...this.#peaks].sort((a, b) => a[1].peakBytes - b[1].peakBytes).slice(0, MOST / 4)
    for (const [key] of smallest) this.#peaks.delete(key)
    this.leftOut += smallest.length
  }
}
