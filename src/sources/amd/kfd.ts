/** The compute side of the driver: which kfd GPU number belongs to which card, and who uses it. */
import { join } from 'node:path'
import { tryList } from '../../core/system-file.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { addressOfLocation, parseInteger, parseTarget } from './parse.ts'

export interface KfdGpu {
  /** Names in `kfd/proc/PID/vram_ID`; several when the card is partitioned. */
  readonly ids: readonly string[]
  readonly target: string | null
}

export function parseProperties(text: string): ReadonlyMap<string, number> {
  const properties = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [name, value] = line.trim().split(/\s+/, 2)
    if (name !== undefined && value !== undefined && /^\d+$/.test(value)) properties.set(name, Number(value))
  }
  return properties
}

/** By PCI address. Nodes that are processors, or that a container may not see, are left out. */
export function readTopology(root: string): ReadonlyMap<string, KfdGpu> {
  const nodes = join(root, 'sys/class/kfd/kfd/topology/nodes')
  const gpus = new Map<string, KfdGpu>()
  for (const name of (tryList(nodes) ?? []).sort((a, b) => Number(a) - Number(b))) {
    const id = parseInteger(tryReadSmallFile(join(nodes, name, 'gpu_id')) ?? '')
    if (id === null || id === 0) continue
    const properties = parseProperties(tryReadSmallFile(join(nodes, name, 'properties')) ?? '')
    const location = properties.get('location_id')
    if (location === undefined) continue
    const address = addressOfLocation(properties.get('domain') ?? 0, location)
    const before = gpus.get(address)
    gpus.set(address, {
      ids: [...(before?.ids ?? []), String(id)],
      target: before?.target ?? parseTarget(properties.get('gfx_target_version') ?? 0),
    })
  }
  return gpus
}
