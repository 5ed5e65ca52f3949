/** The list of vendors, those first that are met most often. A new one is one folder and one row here. */
import type { MetricScope, Vendor } from '../core/vendor.ts'
import { amdVendor } from './amd/vendor.ts'
import { intelVendor } from './intel/vendor.ts'
import { jetsonVendor } from './jetson/vendor.ts'
import { nvidiaVendor } from './nvidia/vendor.ts'

export const VENDORS: readonly [Vendor, ...Vendor[]] = [nvidiaVendor, amdVendor, intelVendor, jetsonVendor]

export const VENDOR_NAMES: readonly string[] = VENDORS.map(({ name }) => name)

/** The vendor of a card with this name, the rarest of those that fit; the most common one if the name does not say. */
export function vendorOfModel(model: string | null): string {
  return (VENDORS.findLast(({ models }) => model !== null && models.test(model)) ?? VENDORS[0]).name
}

/** Under which names of others the cards of a vendor are published, and how their device files are called. */
export const METRIC_NAMING = {
  scopeOf: (vendor: string, set: string): MetricScope | null => vendorOf(vendor)?.metricSets[set] ?? null,
  nodeOf: (vendor: string, minor: number): string | null => {
    const node = vendorOf(vendor)?.deviceNode
    return node === undefined ? null : `${node}${minor}`
  },
}

function vendorOf(wanted: string): Vendor | undefined {
  return VENDORS.find(({ name }) => name === wanted)
}
