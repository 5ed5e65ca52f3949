/** Segments laid end to end on a ribbon that goes on in the next row, each as long as it is large. */
import type { SegmentPicture } from '../../../src/core/memory/snapshot-picture.ts'

export interface RibbonPart {
  readonly segment: number
  readonly row: number
  readonly x: number
  readonly width: number
  /** Bytes of the segment that this part shows. */
  readonly from: number
  readonly to: number
}

export interface Ribbon {
  readonly parts: readonly RibbonPart[]
  readonly rows: number
}

const GAP_PX = 3
const LEAST_PX = 4
/** About as many, where the segments are large enough. */
const ROWS = 12

export function ribbonOf(segments: readonly Pick<SegmentPicture, 'bytes'>[], width: number): Ribbon {
  const total = segments.reduce((sum, { bytes }) => sum + bytes, 0)
  const perByte = total === 0 ? 0 : (width * ROWS) / total
  const parts: RibbonPart[] = []
  let [row, x] = [0, 0]
  for (const [segment, { bytes }] of segments.entries()) {
    const length = Math.max(LEAST_PX, bytes * perByte)
    for (let done = 0; done < length - 0.01; ) {
      if (width - x < LEAST_PX) {
        row++
        x = 0
      }
      const take = Math.min(length - done, width - x)
      parts.push({ segment, row, x, width: take, from: (done / length) * bytes, to: ((done + take) / length) * bytes })
      done += take
      x += take
    }
    x += GAP_PX
  }
  return { parts, rows: row + 1 }
}

/** The part under a point; null: between two. */
export function partAt({ parts }: Ribbon, row: number, x: number): RibbonPart | null {
  return parts.find((part) => part.row === row && x >= part.x && x < part.x + part.width) ?? null
}
