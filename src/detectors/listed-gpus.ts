/** The GPUs that are listed. After a restart a driver may need several tries: a GPU that it has not listed yet is not gone. */
import type { GpuInfo, Provenance } from '../core/model.ts'

const LISTING_MS = 600_000
/** A longer step from sample to sample is no time that passed here. */
const LONGEST_STEP_MS = 60_000

export class ListedGpus {
  readonly #listed = new Map<string, GpuInfo>()
  /** Since the start; of no use once every driver has had its time. */
  readonly #everListed = new Set<string>()
  #watchedMs = 0

  get(id: string): GpuInfo | undefined {
    return this.#listed.get(id)
  }

  replace(devices: readonly GpuInfo[]): void {
    this.#listed.clear()
    for (const device of devices) {
      this.#listed.set(device.id, device)
      if (this.#isListing) this.#everListed.add(device.id)
    }
  }

  /** True: now every driver has had its time. */
  pass(ms: number): boolean {
    if (!this.#isListing) return false
    this.#watchedMs += Math.min(Math.max(0, ms), LONGEST_STEP_MS)
    return !this.#isListing
  }

  isGone(id: string, provenance: Provenance): boolean {
    if (this.#listed.has(id)) return false
    return !this.#isListing || this.#everListed.has(id) || provenance !== 'live'
  }

  get #isListing(): boolean {
    return this.#watchedMs < LISTING_MS
  }
}
