/** The GPUs on the PCI bus, as the kernel lists them: looked up without a driver, and without waking a card. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { tryList, tryReadLink } from '../core/system-file.ts'
import type { Vendor } from '../core/vendor.ts'
import { tryReadSmallFile } from './small-file.ts'
import { VENDORS } from './vendors.ts'

/** `vm`: given to a virtual machine. `display`: its driver only shows a picture. `undriven`: no driver, or one that cannot be read. */
export type CardUse = 'driven' | 'undriven' | 'vm' | 'display'

export interface BusCard {
  /** Vendor.name */
  readonly vendor: string
  /** `00000000:01:00.0`, as drivers write it. */
  readonly busId: string
  /** `10de:2330` */
  readonly model: string
  /** The kernel driver that it is bound to; null: none. */
  readonly driver: string | null
  readonly use: CardUse
}

interface KnownFunction {
  readonly vendor: Vendor
  readonly model: string
}

const PASSED_THROUGH = /vfio|pciback|^pci-stub$/

export class PciBus {
  readonly #folder: string
  /** By address: what a function is does not change while it is on the bus. null: no GPU. */
  readonly #known = new Map<string, KnownFunction | null>()

  constructor(root: string) {
    this.#folder = join(root, 'sys/bus/pci/devices')
  }

  /** In the order of their addresses. */
  cards(): readonly BusCard[] {
    // null: a machine without PCI, or a container that hides it.
    const addresses = tryList(this.#folder)?.sort() ?? []
    const cards = addresses.flatMap((address) => this.#card(address) ?? [])
    // More are known than are there: one is gone, and another may come in its place.
    if (this.#known.size > addresses.length) this.#forgetAllBut(new Set(addresses))
    return cards
  }

  #forgetAllBut(addresses: ReadonlySet<string>): void {
    for (const address of this.#known.keys()) if (!addresses.has(address)) this.#known.delete(address)
  }

  #card(address: string): BusCard | null {
    let known = this.#known.get(address)
    if (known === null) return null
    const path = join(this.#folder, address)
    if (known === undefined) {
      known = functionAt(path)
      this.#known.set(address, known)
    }
    if (known === null) return null
    const driver = driverAt(path)
    const { vendor, model } = known
    return { vendor: vendor.name, busId: busIdOf(address), model, driver, use: useOf(vendor, driver, address) }
  }
}

/** null: no GPU, or a virtual function of a card that is here itself and lends it to virtual machines. */
function functionAt(path: string): KnownFunction | null {
  const number = line(path, 'vendor')
  const vendor = VENDORS.find(({ pciVendor }) => pciVendor === number)
  if (vendor === undefined || existsSync(join(path, 'physfn'))) return null
  const pciClass = line(path, 'class')
  if (!vendor.driver.classes.some((begin) => pciClass.startsWith(begin))) return null
  return { vendor, model: [number, line(path, 'device')].map((one) => one.replace(/^0x/, '')).join(':') }
}

function driverAt(path: string): string | null {
  const link = tryReadLink(join(path, 'driver'))
  return link === null ? null : basename(link)
}

function useOf({ driver: { names, displayOnly, integratedAt } }: Vendor, driver: string | null, address: string): CardUse {
  if (driver === null) return integratedAt?.test(address) ? 'display' : 'undriven'
  if (names.includes(driver)) return 'driven'
  if (PASSED_THROUGH.test(driver)) return 'vm'
  return displayOnly.includes(driver) ? 'display' : 'undriven'
}

/** `0000:8d:00.0` → `00000000:8D:00.0` */
function busIdOf(address: string): string {
  return address.toUpperCase().padStart('00000000:00:00.0'.length, '0')
}

function line(path: string, name: string): string {
  return tryReadSmallFile(join(path, name))?.trim() ?? ''
}
