/** Merges host lines and the processes of GPU lines into HostSamples. */
import type { HostSample, ProcessInfo } from '../model.ts'
import { NO_HOST_READINGS } from '../record.ts'
import type { GpuLine } from './gpu.ts'

/** Older host readings are not repeated in a sample made because processes changed. */
const REPEAT_MS = 10_000

const NO_HOST: HostSample = {
  kind: 'host',
  at: Number.NEGATIVE_INFINITY,
  hostname: 'recording',
  ...NO_HOST_READINGS,
  processes: [],
  processesReason: null,
}

export class HostMerge {
  readonly #infosByGpu = new Map<string, readonly ProcessInfo[]>()
  #host: HostSample = NO_HOST
  #changed = false

  note(host: HostSample): void {
    this.#host = host
    this.#changed = true
  }

  see(line: GpuLine): void {
    const before = this.#infosByGpu.get(line.sample.gpu)
    if (before === undefined ? line.infos.length === 0 : sameInfos(before, line.infos)) return
    this.#infosByGpu.set(line.sample.gpu, line.infos)
    this.#changed = true
  }

  /** null: nothing new. */
  take(at: number): HostSample | null {
    if (!this.#changed) return null
    this.#changed = false
    const processes = new Map<number, ProcessInfo>()
    for (const infos of this.#infosByGpu.values()) for (const info of infos) if (!processes.has(info.pid)) processes.set(info.pid, info)
    const fresh = Math.abs(at - this.#host.at) <= REPEAT_MS
    const { hostname, processesReason } = this.#host
    return { ...(fresh ? this.#host : NO_HOST), at, hostname, processesReason, processes: [...processes.values()] }
  }
}

function sameInfos(a: readonly ProcessInfo[], b: readonly ProcessInfo[]): boolean {
  return a === b || (a.length === b.length && a.every((info, index) => sameInfo(info, b[index])))
}

function sameInfo(a: ProcessInfo, b: ProcessInfo | undefined): boolean {
  if (b === undefined) return false
  for (const key in a) if (a[key as keyof ProcessInfo] !== b[key as keyof ProcessInfo]) return false
  return true
}
