/** What the rest of gpuwarden has to know of a vendor: its folder declares it here, in one place, and nobody else names it. */
import type { SourceKind } from '../core/source-contract.ts'

export interface Vendor {
  /** The name of its source, of its check in `doctor` and of its cards' `vendor`. */
  readonly name: string
  /** As people write it. */
  readonly title: string
  /** Nothing of the driver is touched before this. */
  load(): Promise<SourceKind>
  /** As sysfs tells it: `0x10de`. */
  readonly pciVendor: string
  /** Names of its cards, for recordings that do not tell who made them. */
  readonly models: RegExp
  /** Device files that a process has open while it uses a card. */
  readonly deviceFiles: RegExp
  /** Sets of metric names, made by others for its cards alone, under which its cards are published. */
  readonly metricSets: readonly string[]
  /** What `doctor` tells. */
  readonly help: {
    /** How to get a driver that answers. */
    readonly install: string
    /** How a container gets its cards. */
    readonly container: string
    /** The driver's own command, which hangs when the driver does. */
    readonly tool: string
    /** What is not seen when the kernel log cannot be read; null where it is not needed. */
    readonly kernelLog: string | null
    /** The package of native code that calls the driver; null where there is none. */
    readonly nativePackage: string | null
  }
  /** What the systemd unit needs for it. */
  readonly unit: {
    /** Units that have to be started before. */
    readonly after: readonly string[]
    /** As DeviceAllow= takes them. */
    readonly devices: readonly string[]
    /** Why there are none, for those who read the unit. */
    readonly note: string | null
  }
}
