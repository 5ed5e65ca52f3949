/** What a card is, from files that do not wake it. */
import { join } from 'node:path'
import { fallbackId } from '../drm/card.ts'
import type { CardPlace } from '../drm/discover.ts'
import type { Identity } from '../drm/driver.ts'
import { parseHex, parseInteger, parseName } from '../drm/parse.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { type KfdNode, readTopology } from './kfd.ts'
import { isApu, nameOf, readNameFile } from './names.ts'
import { parseUniqueId } from './parse.ts'

export interface AmdIdentity extends Identity {
  /** The compiler's name of the chip, `gfx1100`. */
  readonly target: string | null
  readonly nodes: readonly KfdNode[]
}

export function identify(root: string, place: CardPlace): AmdIdentity {
  const read = (name: string) => tryReadSmallFile(join(place.devicePath, name)) ?? ''
  const device = parseHex(read('device'))
  const kfd = place.address === null ? undefined : readTopology(root).get(place.address)
  const target = kfd?.target ?? readChip(place)
  const nodes = kfd?.nodes ?? []
  const revision = parseHex(read('revision'))
  return {
    id: parseUniqueId(read('unique_id')) ?? fallbackId(place),
    sharesMemory: device !== null && isApu(device),
    target,
    nodes,
    computeIds: nodes.map(({ id }) => id),
    facts: {
      name: parseName(read('product_name')) ?? nameOf(device, revision, () => readNameFile(root)),
      serial: parseName(read('serial_number')),
      vbiosVersion: parseName(read('vbios_version')),
      driverVersion: readDriverVersion(root),
      architecture: target,
      memoryTotalBytes: parseInteger(read('mem_info_vram_total')),
    },
  }
}

function readDriverVersion(root: string): string | null {
  const version = tryReadSmallFile(join(root, 'sys/module/amdgpu/version')) ?? tryReadSmallFile(join(root, 'proc/sys/kernel/osrelease'))
  return version === null ? null : parseName(version)
}

/** Where the compute driver is not there: the version of the graphics core, 11.0.2 → `gfx1102`. */
function readChip(place: CardPlace): string | null {
  const core = join(place.devicePath, 'ip_discovery/die/0/GC/0')
  const version = ['major', 'minor', 'revision'].map((name) => parseInteger(tryReadSmallFile(join(core, name)) ?? ''))
  return version.some((part) => part === null) ? null : `gfx${version[0]}${version[1]?.toString(16)}${version[2]?.toString(16)}`
}
