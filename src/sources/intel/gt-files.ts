/** The units (GT) of a card that have a clock of their own. xe and i915 keep the same figures in files of different names. */
import { join } from 'node:path'
import { tryList } from '../../core/system-file.ts'
import { Attribute, attribute } from '../drm/attribute.ts'
import type { CardPlace } from '../drm/discover.ts'
import { tryReadSmallFile } from '../small-file.ts'

export interface GtFiles {
  /** Only video engines; their clock is not the GPU's. */
  readonly media: boolean
  /** In MHz; 0 while it sleeps. */
  readonly clock: Attribute | null
  readonly clockMax: Attribute | null
  /** 1 while anything holds the clock down. */
  readonly throttled: Attribute | null
  /** By name (`pl1`, `thermal` …). */
  readonly reasons: ReadonlyMap<string, Attribute>
  /** Milliseconds asleep since the driver was loaded. */
  readonly asleep: Attribute | null
}

export function findGts({ cardPath, devicePath }: CardPlace, integrated: boolean): readonly GtFiles[] {
  const tiles = numbered(devicePath, 'tile')
  if (tiles.length > 0) return tiles.flatMap((tile) => numbered(tile, 'gt').map(xeGt))
  const gts = numbered(join(cardPath, 'gt'), 'gt')
  return gts.length > 0 ? gts.map((gt, index) => i915Gt(gt, integrated && index > 0)) : oldI915Gt(cardPath)
}

export function closeGts(gts: readonly GtFiles[]): void {
  for (const gt of gts) {
    for (const file of Object.values(gt)) if (file instanceof Attribute) file.close()
    for (const file of gt.reasons.values()) file.close()
  }
}

function xeGt(folder: string): GtFiles {
  const throttle = join(folder, 'freq0/throttle')
  return {
    media: (tryReadSmallFile(join(folder, 'gtidle/name')) ?? '').trim().endsWith('-mc'),
    clock: attribute(join(folder, 'freq0/act_freq')),
    clockMax: attribute(join(folder, 'freq0/rp0_freq')) ?? attribute(join(folder, 'freq0/max_freq')),
    throttled: attribute(join(throttle, 'status')),
    reasons: findReasons(throttle, /^reason_(\w+)$/),
    asleep: attribute(join(folder, 'gtidle/idle_residency_ms')),
  }
}

/** On processors since Meteor Lake the second unit is that of the video engines; on cards it is another tile. */
function i915Gt(folder: string, media: boolean): GtFiles {
  return {
    media,
    clock: attribute(join(folder, 'rps_act_freq_mhz')),
    clockMax: attribute(join(folder, 'rps_RP0_freq_mhz')) ?? attribute(join(folder, 'rps_max_freq_mhz')),
    throttled: attribute(join(folder, 'throttle_reason_status')),
    reasons: findReasons(folder, /^throttle_reason_(?!status$)(\w+)$/),
    asleep: attribute(join(folder, 'rc6_residency_ms')),
  }
}

/** Kernels before 5.19. */
function oldI915Gt(cardPath: string): readonly GtFiles[] {
  const clock = attribute(join(cardPath, 'gt_act_freq_mhz'))
  if (clock === null) return []
  const clockMax = attribute(join(cardPath, 'gt_RP0_freq_mhz')) ?? attribute(join(cardPath, 'gt_max_freq_mhz'))
  return [
    { media: false, clock, clockMax, throttled: null, reasons: new Map(), asleep: attribute(join(cardPath, 'power/rc6_residency_ms')) },
  ]
}

function findReasons(folder: string, form: RegExp): ReadonlyMap<string, Attribute> {
  const found = new Map<string, Attribute>()
  for (const name of (tryList(folder) ?? []).sort()) {
    const reason = form.exec(name)?.[1]
    if (reason !== undefined) found.set(reason, new Attribute(join(folder, name)))
  }
  return found
}

/** `tile0`, `tile1` … in the order of their numbers. */
export function numbered(folder: string, start: string): string[] {
  const names = (tryList(folder) ?? []).filter((name) => name.startsWith(start) && /^\d+$/.test(name.slice(start.length)))
  return names.sort((a, b) => Number(a.slice(start.length)) - Number(b.slice(start.length))).map((name) => join(folder, name))
}
