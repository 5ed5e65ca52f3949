/** Cards as the kernel's driver lists them in /proc: gives their identity even when NVML cannot, for a lost one. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { normalizeBusId } from './layouts.ts'

export interface DriverCard {
  /** `00000000:8D:00.0` */
  readonly busId: string
  /** null: the driver has not asked the card yet, and now cannot. */
  readonly uuid: string | null
  readonly name: string | null
}

const FOLDER = 'proc/driver/nvidia/gpus'

/** In the order of NVML, which is that of the addresses. Empty where there is no such list. */
export function listDriverCards(root: string): DriverCard[] {
  const folder = join(root, FOLDER)
  return entriesOf(folder)
    .flatMap((address) => cardOf(address, textOf(join(folder, address, 'information'))) ?? [])
    .sort((a, b) => (a.busId < b.busId ? -1 : 1))
}

/** null: no card, or one that the administrator keeps from the driver. */
export function cardOf(address: string, information: string): DriverCard | null {
  const busId = normalizeBusId(address)
  if (busId === null || /^GPU Excluded:\s*Yes/m.test(information)) return null
  // Question marks stand for what is not known.
  const uuid = /^GPU UUID:\s*(GPU-[0-9a-f-]+)\s*$/im.exec(information)?.[1] ?? null
  return { busId, uuid, name: /^Model:\s*(\S.*?)\s*$/m.exec(information)?.[1] ?? null }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // No driver, another kind of driver (WSL, Jetson), or a container without it.
    return []
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
