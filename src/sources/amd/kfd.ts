/** The compute side of the driver: which kfd GPU number belongs to which card, and how it is partitioned. */
import { join } from 'node:path'
import type { Reading } from '../../core/model.ts'
import { tryList } from '../../core/system-file.ts'
import { parseInteger } from '../drm/parse.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { addressOfLocation, parseTarget } from './parse.ts'

export interface KfdNode {
  /** The name in `kfd/proc/PID/vram_ID`. */
  readonly id: string
  /** Which partition of its card. */
  readonly partition: number
  readonly memoryBytes: Reading
}

export interface KfdGpu {
  /** One, or one for each partition. */
  readonly nodes: readonly KfdNode[]
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
    // The kernel keeps the number of the partition in the four highest bits.
    const node = { id: String(id), partition: location >>> 28, memoryBytes: readMemory(join(nodes, name, 'mem_banks')) }
    gpus.set(address, {
      nodes: [...(before?.nodes ?? []), node].sort((a, b) => a.partition - b.partition),
      target: before?.target ?? parseTarget(properties.get('gfx_target_version') ?? 0),
    })
  }
  return new Map([...gpus].map(([address, gpu]) => [address, { ...gpu, nodes: distinct(gpu.nodes) }]))
}

/** Older kernels do not number partitions: then their order does. */
function distinct(nodes: readonly KfdNode[]): readonly KfdNode[] {
  const numbers = new Set(nodes.map(({ partition }) => partition))
  return numbers.size === nodes.length ? nodes : nodes.map((node, partition) => ({ ...node, partition }))
}

function readMemory(folder: string): Reading {
  let sum: Reading = null
  for (const bank of tryList(folder) ?? []) {
    const size = parseProperties(tryReadSmallFile(join(folder, bank, 'properties')) ?? '').get('size_in_bytes')
    if (size !== undefined) sum = (sum ?? 0) + size
  }
  return sum
}
