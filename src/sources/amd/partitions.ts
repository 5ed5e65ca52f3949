/** A card that is divided (MI300X in DPX, QPX or CPX mode): each partition is a device to programs. */
import type { Reading } from '../../core/model.ts'
import { GPU_FIELDS } from '../../core/record.ts'
import type { CardReadings, Partition } from '../drm/driver.ts'
import type { AmdIdentity } from './identity.ts'

const OWN_FIELDS = new Set(['utilizationRatio', 'memoryTotalBytes', 'memoryUsedBytes', 'memoryFreeBytes'])

const OF_THE_WHOLE: Readonly<Record<string, string>> = Object.fromEntries(
  GPU_FIELDS.filter((field) => !OWN_FIELDS.has(field)).map((field) => [field, 'belongs to the whole GPU, not to a partition']),
)

/** How busy each compute die (XCD) is, by partition. */
type Activity = readonly (readonly number[])[] | null

/** None while the card is one device. */
export function partitionsOf(identity: AmdIdentity, partitioning: string | null, activity: () => Activity): readonly Partition[] {
  const { id, nodes } = identity
  if (nodes.length < 2) return []
  return nodes.map((node) => ({
    facts: {
      id: `${id}/${node.partition}`,
      mig: { parentId: id, gpuInstanceId: node.partition, computeInstanceId: null, profile: partitioning },
      memoryTotalBytes: node.memoryBytes,
      unavailable: OF_THE_WHOLE,
    },
    computeId: node.id,
    read: () => ({ utilizationRatio: mean(activity()?.[node.partition] ?? []) }),
  }))
}

const XCD_FIELDS = [
  'xcd0ActiveRatio',
  'xcd1ActiveRatio',
  'xcd2ActiveRatio',
  'xcd3ActiveRatio',
  'xcd4ActiveRatio',
  'xcd5ActiveRatio',
  'xcd6ActiveRatio',
  'xcd7ActiveRatio',
] as const

/** The dies of all partitions, one after the other. */
export function xcdReadings(activity: Activity): CardReadings {
  const dies = activity?.flat() ?? []
  return Object.fromEntries(XCD_FIELDS.slice(0, dies.length).map((field, die) => [field, dies[die] ?? null]))
}

function mean(values: readonly number[]): Reading {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
}
