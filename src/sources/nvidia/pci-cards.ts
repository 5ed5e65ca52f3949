/** NVIDIA's display cards as the PCI bus shows them, and whether they sleep: looked up without touching the driver. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { normalizeBusId } from './layouts.ts'

const NVIDIA_VENDOR = '0x10de'
const DISPLAY_CLASS = '0x03'

export interface PciCard {
  /** `00000000:01:00.0` */
  readonly busId: string
  /** The kernel's runtime power state, right now. */
  suspended(): boolean
  close(): void
}

export function listCards(root: string): PciCard[] {
  const folder = join(root, 'sys/bus/pci/devices')
  if (!existsSync(folder)) return []
  const cards: PciCard[] = []
  for (const address of readdirSync(folder).sort()) {
    const path = join(folder, address)
    const busId = normalizeBusId(address)
    if (busId === null || line(path, 'vendor') !== NVIDIA_VENDOR || !line(path, 'class')?.startsWith(DISPLAY_CLASS)) continue
    cards.push(new SysfsCard(busId, path))
  }
  return cards
}

class SysfsCard implements PciCard {
  readonly busId: string
  #file: number | null = null
  readonly #bytes = Buffer.alloc(16)

  constructor(busId: string, path: string) {
    this.busId = busId
    const status = join(path, 'power/runtime_status')
    // `on` forbids sleep: then there is nothing to look at in every tick.
    if (line(path, 'power/control') !== 'on' && existsSync(status)) this.#file = openSync(status, 'r')
  }

  suspended(): boolean {
    if (this.#file === null) return false
    const length = this.#read(this.#file)
    return this.#bytes.toString('latin1', 0, length).startsWith('suspended')
  }

  /** 0 for a card that was taken off the bus: it is not asleep, and the driver will say what became of it. */
  #read(file: number): number {
    try {
      return readSync(file, this.#bytes, 0, this.#bytes.length, 0)
    } catch (fault) {
      if ((fault as NodeJS.ErrnoException).code === 'ENODEV') return 0
      throw fault
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }
}

/** First line of a sysfs file; null when there is no such file. */
function line(folder: string, name: string): string | null {
  const path = join(folder, name)
  return existsSync(path) ? readFileSync(path, 'latin1').trim() : null
}
