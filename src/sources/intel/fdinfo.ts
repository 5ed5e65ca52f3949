/** What xe and i915 report about one open device file. */
import type { Reading } from '../../core/model.ts'
import { engineNanoseconds, parseCount, regionBytes } from '../drm/fdinfo.ts'
import { add, type DrmClient, type EngineWork } from '../drm/process-use.ts'

type Fields = ReadonlyMap<string, string>

/** Memory of the card; the rest is the host's. */
const OWN_REGIONS = /^drm-(?:resident|total|memory)-((?:vram|local|stolen-local)\d*)$/
const HOST_REGIONS = /^drm-(?:resident|total|memory)-((?:system|gtt|stolen-system|stolen)\d*)$/

/** The class of an engine: the name that i915 gives it, and that of xe. */
const CLASSES = { render: 'rcs', compute: 'ccs', video: 'vcs' } as const

/** null: not a file of these drivers. */
export function parseClient(fields: Fields): DrmClient | null {
  const driver = fields.get('drm-driver')
  const address = fields.get('drm-pdev')
  const client = fields.get('drm-client-id')
  if ((driver !== 'xe' && driver !== 'i915') || !address || !client) return null
  const work = driver === 'xe' ? cyclesOf : nanosecondsOf
  return {
    address: address.toLowerCase(),
    client,
    ownBytes: sumOf(fields, OWN_REGIONS),
    borrowedBytes: sumOf(fields, HOST_REGIONS),
    engines: {
      graphics: work(fields, 'render'),
      compute: work(fields, 'compute'),
      encoder: null,
      // One engine decodes and encodes.
      decoder: work(fields, 'video'),
    },
  }
}

/** i915 counts time. */
function nanosecondsOf(fields: Fields, name: keyof typeof CLASSES): EngineWork | null {
  const busy = engineNanoseconds(fields, name)
  return busy === null ? null : { busy, total: null, capacity: capacityOf(fields, name) }
}

/** xe counts cycles, and those that have passed. */
function cyclesOf(fields: Fields, name: keyof typeof CLASSES): EngineWork | null {
  const engine = CLASSES[name]
  const busy = parseCount(fields.get(`drm-cycles-${engine}`))
  const total = parseCount(fields.get(`drm-total-cycles-${engine}`))
  return busy === null || total === null ? null : { busy, total, capacity: capacityOf(fields, engine) }
}

function capacityOf(fields: Fields, engine: string): number {
  return Math.max(1, parseCount(fields.get(`drm-engine-capacity-${engine}`)) ?? 1)
}

function sumOf(fields: Fields, regions: RegExp): Reading {
  const names = new Set([...fields.keys()].flatMap((key) => regions.exec(key)?.[1] ?? []))
  return [...names].reduce<Reading>((sum, name) => add(sum, regionBytes(fields, name)), null)
}
