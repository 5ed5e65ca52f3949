/** Which pool an address belongs to. Files before torch 2.12 say so of segments only. */
import type { Segment } from '../read/snapshot-tables.ts'
import type { Device } from './device.ts'

export const DEFAULT_POOL = '0.0'

export class SegmentPools {
  readonly #segments: readonly Segment[]
  readonly #names: readonly string[]

  constructor({ segments, tables }: Device) {
    this.#segments = segments
    this.#names = tables.pools
  }

  name(pool: number): string {
    return this.#names[pool] || DEFAULT_POOL
  }

  /** `pool`: as the event says; 0 where it does not. A segment that is gone at the end is taken to be of the default pool. */
  ofEvent(pool: number, address: number): string {
    return this.name(pool === 0 ? (this.segmentAt(address)?.pool ?? 0) : pool)
  }

  segmentAt(address: number): Segment | null {
    let [low, high] = [0, this.#segments.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#segments[middle] as Segment).address <= address) low = middle + 1
      else high = middle
    }
    const found = this.#segments[low - 1]
    return found !== undefined && address < found.address + found.totalBytes ? found : null
  }
}
