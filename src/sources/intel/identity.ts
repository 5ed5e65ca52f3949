/** What a card is, from files that do not wake it. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { tryReadLink } from '../../core/system-file.ts'
import { fallbackId } from '../drm/card.ts'
import type { CardPlace } from '../drm/discover.ts'
import type { Identity } from '../drm/driver.ts'
import { parseHex, parseName } from '../drm/parse.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { nameOf } from './names.ts'

/** Graphics inside a processor is always here. */
const INTEGRATED_ADDRESS = /^0+:00:02\.0$/

export interface IntelIdentity extends Identity {
  readonly root: string
}

export function identify(root: string, place: CardPlace): IntelIdentity {
  const read = (name: string) => tryReadSmallFile(join(place.devicePath, name)) ?? ''
  const integrated = place.address !== null && INTEGRATED_ADDRESS.test(place.address)
  const kernel = parseName(tryReadSmallFile(join(root, 'proc/sys/kernel/osrelease')) ?? '')
  return {
    id: fallbackId(place),
    root,
    sharesMemory: integrated,
    computeIds: [],
    facts: {
      name: nameOf(parseHex(read('device')), integrated),
      driverVersion: [driverOf(place, read('uevent')), kernel].filter((part) => part !== null).join(' ') || null,
    },
  }
}

function driverOf(place: CardPlace, uevent: string): string | null {
  const link = tryReadLink(join(place.devicePath, 'driver'))
  if (link !== null) return basename(link)
  const named = /^DRIVER=(\w+)$/m.exec(uevent)?.[1]
  return named ?? (existsSync(join(place.devicePath, 'tile0')) ? 'xe' : null)
}
