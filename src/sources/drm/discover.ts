import { readdirSync, readlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { errorCode } from '../../core/system-file.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { parsePciAddress } from './parse.ts'

export interface CardPlace {
  readonly minor: number
  /** `…/sys/class/drm/cardN` */
  readonly cardPath: string
  /** `…/sys/class/drm/cardN/device` */
  readonly devicePath: string
  /** `0000:03:00.0`; null for a card that is not on PCI. */
  readonly address: string | null
}

/** Names of all cards of any vendor, `card0` `card1` …; [] when the kernel has no graphics at all. */
export function listCards(root: string): string[] {
  const folder = join(root, 'sys/class/drm')
  try {
    return readdirSync(folder).filter((name) => /^card\d+$/.test(name))
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return []
    throw new Error(`cannot list ${folder} (${code}): allow this user to read it`, { cause: error })
  }
}

/** The cards of one vendor (`0x1002`), in the order of their PCI addresses. */
export function discoverCards(root: string, pciVendor: string, names: readonly string[] = listCards(root)): CardPlace[] {
  const places: CardPlace[] = []
  for (const name of names) {
    const cardPath = join(root, 'sys/class/drm', name)
    const devicePath = join(cardPath, 'device')
    if (tryReadSmallFile(join(devicePath, 'vendor'))?.trim().toLowerCase() !== pciVendor) continue
    places.push({ minor: Number(name.slice('card'.length)), cardPath, devicePath, address: addressOf(devicePath) })
  }
  return places.sort((a, b) => orderKey(a).localeCompare(orderKey(b), 'en') || a.minor - b.minor)
}

/** The same slot, whatever number its card has now. */
export function samePlace(a: CardPlace, b: CardPlace): boolean {
  return a.address === null ? b.address === null && a.minor === b.minor : a.address === b.address
}

function addressOf(devicePath: string): string | null {
  try {
    const address = parsePciAddress(basename(readlinkSync(devicePath)))
    if (address !== null) return address
  } catch (error) {
    errorCode(error)
  }
  const slot = /^PCI_SLOT_NAME=(.+)$/m.exec(tryReadSmallFile(join(devicePath, 'uevent')) ?? '')
  return slot?.[1] === undefined ? null : parsePciAddress(slot[1])
}

function orderKey(place: CardPlace): string {
  return place.address === null ? '~' : place.address.padStart('00000000:00:00.0'.length, '0')
}
