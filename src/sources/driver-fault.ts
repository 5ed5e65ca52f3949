/** Why a vendor's cards cannot be read, from what the bus shows and what the source said. */
import { existsSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { DriverFault, type DriverFaultKind } from '../core/source-contract.ts'
import type { Vendor } from '../core/vendor.ts'
import { type BusCard, PciBus } from './pci-bus.ts'
import { VENDORS } from './vendors.ts'

const MOST_NAMED = 4

/** What a source says where the driver is out of reach; the bus may know better why. */
const OUT_OF_REACH: ReadonlySet<DriverFaultKind> = new Set(['no_driver', 'no_library'])

/** `thrown` null: it found no hardware; then null means that nothing is wrong. */
export function faultOfSource(name: string, thrown: null, root: string): DriverFault | null
export function faultOfSource(name: string, thrown: unknown, root: string): DriverFault
export function faultOfSource(name: string, thrown: unknown, root: string): DriverFault | null {
  const vendor = VENDORS.find((one) => one.name === name)
  const cards = vendor ? new PciBus(root).cards().filter((card) => card.vendor === name) : []
  const seen = vendor ? faultOnBus(vendor, cards, root) : null
  if (thrown === null) return seen
  const said = thrown instanceof DriverFault ? thrown : new DriverFault('other', thrown instanceof Error ? thrown.message : String(thrown))
  return seen?.kind === 'no_device_files' && OUT_OF_REACH.has(said.kind) ? seen : said
}

function faultOnBus(vendor: Vendor, cards: readonly BusCard[], root: string): DriverFault | null {
  const { title, help, driver } = vendor
  const undriven = cards.filter(({ use }) => use === 'undriven')
  const driven = cards.filter(({ use }) => use === 'driven')
  if (driven.length === 0 || driver.deviceFile === null)
    return undriven.length === 0 ? null : new DriverFault('no_driver', undrivenInWords(vendor, undriven))
  if (!existsSync(join(root, driver.deviceFile)))
    return new DriverFault(
      'no_device_files',
      `${title}: the driver runs, but /${driver.deviceFile} is missing here. In a container, start it with ${help.container}. On the machine itself, run "${help.tool}" once as root: it makes the device files.`,
    )
  return new DriverFault(
    'no_gpu',
    `${title}: the driver is loaded, but lists no GPU, although the PCI bus shows ${namesOf(driven)}. Look for its errors in the kernel log (dmesg). In a container, pass the GPUs with ${help.container}.`,
  )
}

/** What to say of cards without a usable driver. */
export function undrivenInWords({ title, help }: Vendor, cards: readonly BusCard[]): string {
  const other = cards.find(({ driver }) => driver !== null)?.driver
  const why = other === undefined ? 'no driver is loaded' : `bound to ${other}, which gives no readings`
  return `${title}: ${namesOf(cards)}: ${why}. ${help.install}`
}

/** Changes when the driver of a vendor may have come, gone or been replaced. */
export function signsOf(vendor: Vendor, cards: readonly BusCard[], root: string, library: string | null): string {
  const bound = cards.filter((card) => card.vendor === vendor.name).map(({ busId, driver }) => `${busId}=${driver ?? ''}`)
  const files = vendor.driver.signs.map((path) => join(root, path))
  if (library !== null && isAbsolute(library)) files.push(library)
  return [...bound, ...files.map(identityOf)].join(' ')
}

function identityOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? '-' : `${stat.ino}:${stat.mtimeMs}:${stat.size}`
}

/** `the card at 0000:01:00.0`, `8 cards (0000:01:00.0, …)` */
function namesOf(cards: readonly BusCard[]): string {
  const named = cards.slice(0, MOST_NAMED).map(({ busId }) => busId.replace(/^0000/, '').toLowerCase())
  if (cards.length === 1) return `the card at ${named.join()}`
  return `${cards.length} cards (${named.join(', ')}${cards.length > MOST_NAMED ? ', …' : ''})`
}
