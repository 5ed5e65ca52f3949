/** GPUs that add up: a card and its MIG instances are one card. */
import type { GpuInfo, GpuSample, Reading } from './model.ts'

export interface Countable {
  readonly info: GpuInfo
  readonly sample: GpuSample | null
}

/** An instance's memory and power are its card's: it counts only where its card is not in the list. */
export function countedOnce<T extends { readonly info: GpuInfo }>(list: readonly T[]): readonly T[] {
  const ids = new Set(list.map(({ info }) => info.id))
  return list.filter(({ info }) => info.mig === null || !ids.has(info.mig.parentId))
}

/**
 * Of a card; in MIG mode that of its instances, weighted by their memory, because the driver gives none for the whole. What is not given to an
 * instance idles. Instances of one GPU instance have the same figure, so one of them counts. null when one of them is not known.
 */
export function cardUtilization({ info, sample }: Countable, all: readonly Countable[]): Reading {
  const total = sample?.memoryTotalBytes ?? null
  if (sample === null || sample.utilizationRatio !== null || info.migMode !== 'enabled' || !total) return sample?.utilizationRatio ?? null
  const own = all.filter((one) => one.info.mig?.parentId === info.id)
  const byGpuInstance = new Map(own.map((one) => [one.info.mig?.gpuInstanceId, one.sample]))
  if (byGpuInstance.size === 0) return null
  let busy = 0
  for (const one of byGpuInstance.values()) {
    if (one === null || one.utilizationRatio === null || one.memoryTotalBytes === null) return null
    busy += one.utilizationRatio * one.memoryTotalBytes
  }
  return Math.min(1, busy / total)
}
