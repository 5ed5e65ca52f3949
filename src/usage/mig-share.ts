/** How much of its card a MIG instance is. */
import type { GpuInfo } from '../core/model.ts'

/** Compute slices of a card. */
const SLICES = 7
const SLICES_OF: readonly (readonly [card: RegExp, slices: number])[] = [[/\bA30\b/, 4]]

/** By its compute slices (`1g.10gb`, `1c.3g.40gb`), else by its memory. */
export function migShare({ mig, memoryTotalBytes }: GpuInfo, parent: GpuInfo): number {
  const profile = mig?.profile ?? ''
  const slices = /^(\d+)c\./.exec(profile)?.[1] ?? /^(\d+)g\./.exec(profile)?.[1]
  const all = SLICES_OF.find(([card]) => card.test(parent.name ?? ''))?.[1] ?? SLICES
  if (slices !== undefined) return Math.min(1, Number(slices) / all)
  return memoryTotalBytes !== null && parent.memoryTotalBytes ? Math.min(1, memoryTotalBytes / parent.memoryTotalBytes) : 1 / SLICES
}
