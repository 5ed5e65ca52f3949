/** What the rest of gpuwarden has to know of a vendor: its folder in sources/ declares it, and nobody else names it. */
import type { SourceKind } from './source-contract.ts'

export interface Vendor {
  /** The name of its source, of its check in `doctor` and of its cards' `vendor`. */
  readonly name: string
  readonly title: string
  load(): Promise<SourceKind>
  /** As sysfs has it: `0x10de`; null where its GPUs are on no PCI bus. */
  readonly pciVendor: string | null
  readonly driver: KernelDriver
  /** Names of its cards, for recordings without a vendor. */
  readonly models: RegExp
  /** Device files that a process has open while it uses a card. */
  readonly deviceFiles: RegExp
  /** Sets of metric names that others made, under which its cards are published: all of them, or only those that mean the same for every vendor. */
  readonly metricSets: Readonly<Record<string, MetricScope>>
  /** How the names of its device files begin; the minor number follows: `card`. */
  readonly deviceNode: string
  readonly help: {
    readonly install: string
    readonly container: string
    /** The driver's own command, which hangs when the driver does. */
    readonly tool: string
    /** What is not seen when the kernel log cannot be read; null where it is not needed. */
    readonly kernelLog: string | null
    /** The device file that programs need to compute, where it has permissions of its own: `dev/kfd`. */
    readonly computeFile: string | null
    /** The package of native code that calls the driver; null where there is none. */
    readonly nativePackage: string | null
  }
  readonly unit: DriverUnit
}

export type MetricScope = 'all' | 'shared'

/** How the driver of a vendor's cards is recognized without touching it. */
export interface KernelDriver {
  /** Names under which the kernel binds a card to it. */
  readonly names: readonly string[]
  /** Drivers that only show a picture: a card on one of them is not watched, and nothing is wrong. */
  readonly displayOnly: readonly string[]
  /** PCI classes of the cards, by how they begin: `0x03` for display controllers. */
  readonly classes: readonly string[]
  /** Where graphics inside a processor is: without a driver it is not used, and nothing is wrong. */
  readonly integratedAt?: RegExp
  /** Needed besides a bound driver, such as `dev/nvidiactl`; null: a bound driver is enough. */
  readonly deviceFile: string | null
  /** Files that come or change with the driver: then it is tried again at once. */
  readonly signs: readonly string[]
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
