/** What the rest of gpuwarden has to know of a vendor: its folder in sources/ declares it, and nobody else names it. */
import type { SourceKind } from './source-contract.ts'

export interface Vendor {
  /** The name of its source, of its check in `doctor` and of its cards' `vendor`. */
  readonly name: string
  readonly title: string
  load(): Promise<SourceKind>
  /** As sysfs has it: `0x10de`. */
  readonly pciVendor: string
  /** Names of its cards, for recordings without a vendor. */
  readonly models: RegExp
  /** Device files that a process has open while it uses a card. */
  readonly deviceFiles: RegExp
  /** Sets of metric names, made by others for its cards alone, under which its cards are published. */
  readonly metricSets: readonly string[]
  readonly help: {
    readonly install: string
    readonly container: string
    /** The driver's own command, which hangs when the driver does. */
    readonly tool: string
    /** What is not seen when the kernel log cannot be read; null where it is not needed. */
    readonly kernelLog: string | null
    /** The package of native code that calls the driver; null where there is none. */
    readonly nativePackage: string | null
  }
  readonly unit: DriverUnit
}

/** What the systemd unit needs for a driver. */
export interface DriverUnit {
  /** Units that have to be started before. */
  readonly after: readonly string[]
  /** As DeviceAllow= takes them. */
  readonly devices: readonly string[]
  /** Why there are none, for those who read the unit. */
  readonly note: string | null
}
