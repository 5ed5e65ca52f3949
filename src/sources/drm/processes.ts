/** Who uses which card: open device files (fdinfo), joined with the driver's own list of compute processes where it has one. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { GpuProcess, Reading } from '../../core/model.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import { errorCode, tryList, tryReadLink } from '../../core/system-file.ts'
import { tryReadSmallFile } from '../small-file.ts'
import type { CardDriver, CardUsage, ComputeProcesses } from './driver.ts'
import { parseFields } from './fdinfo.ts'
import { add, addShares, type CardUse, joinUses, keyOf, OpenFile } from './process-use.ts'

const SCAN_INTERVAL_MS = 2000
/** Listing a process's descriptors is expensive: one without a GPU is listed again when its known age has doubled, at most this late. */
const LOOK_AGAIN_MS = 30_000
const MAX_PIDS = 4096
const MAX_DESCRIPTORS = 4096
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]'

/** What the list needs to know of a card. */
export interface ProcessCard {
  readonly address: string | null
  readonly computeIds: readonly string[]
  readonly sharesMemory: boolean
}

interface Known {
  readonly firstSeenMs: number
  lookAtMs: number
  files: OpenFile[]
  computes: boolean
  /** Its descriptors are not ours to see. */
  hidden: boolean
}

const IN_CONTAINER = 'inside a container only its own processes are visible: run it with --pid=host'
const NO_USE: ReadonlyMap<number, CardUse> = new Map()

export class ProcessList {
  readonly #proc: string
  readonly #driver: CardDriver
  readonly #inContainer: boolean
  readonly #compute: ComputeProcesses | null
  #known = new Map<number, Known>()
  #scanAtMs = Number.NEGATIVE_INFINITY
  #listed = false
  #hidden = false

  constructor(root: string, driver: CardDriver) {
    this.#proc = join(root, 'proc')
    this.#driver = driver
    this.#inContainer = inPidNamespace(this.#proc)
    // A driver lists the host's PIDs; in a container they are not those of our /proc and cannot be joined with them.
    this.#compute = this.#inContainer ? null : (driver.compute?.open(root) ?? null)
  }

  /** Why the list is not the whole truth, or null. */
  get incomplete(): string | null {
    if (this.#inContainer) return IN_CONTAINER
    return this.#hidden ? this.#driver.hiddenProcesses : null
  }

  /** The driver lists compute processes, each on its partition. */
  get listsCompute(): boolean {
    return this.#compute !== null
  }

  /** By PCI address; null when /proc cannot be listed. */
  read(tick: SourceTick, cards: readonly ProcessCard[]): ReadonlyMap<string, CardUsage> | null {
    const scan = tick.monotonicMs >= this.#scanAtMs
    if (scan) this.#scan(tick.monotonicMs)
    if (!this.#listed) return null
    const usages = new Map<string, CardUsage>()
    const open = this.#openUses(tick.monotonicMs, scan)
    for (const { address, computeIds, sharesMemory } of cards) {
      if (address === null) continue
      const compute = this.#compute?.read(computeIds, tick.monotonicMs, scan) ?? new Map<number, Reading>()
      const uses = open.get(address) ?? NO_USE
      const processes = joinUses(uses, compute, sharesMemory)
      usages.set(address, {
        processes,
        engines: addShares([...uses.values()].flatMap(({ files }) => files)),
        heldBytes: processes.reduce<Reading>((sum, { memoryUsedBytes }) => add(sum, memoryUsedBytes), null),
        complete: this.incomplete === null,
      })
    }
    return usages
  }

  /** Those of one partition: fdinfo does not tell partitions apart. */
  ofCompute(id: string, nowMs: number): GpuProcess[] | null {
    return this.#compute === null ? null : joinUses(NO_USE, this.#compute.read([id], nowMs, true), false)
  }

  close(): void {
    this.#compute?.close()
  }

  #openUses(nowMs: number, all: boolean): Map<string, Map<number, CardUse>> {
    const uses = new Map<string, Map<number, CardUse>>()
    for (const [pid, known] of this.#known)
      for (const file of known.files) {
        if (!file.inUse && !all) continue
        file.read(nowMs)
        if (!file.inUse) continue
        const ofCard = uses.get(file.address) ?? new Map<number, CardUse>()
        uses.set(file.address, ofCard)
        const use = ofCard.get(pid) ?? { files: [], computes: known.computes }
        ofCard.set(pid, use)
        use.files.push(file)
      }
    return uses
  }

  #scan(nowMs: number): void {
    this.#scanAtMs = nowMs + SCAN_INTERVAL_MS
    const names = tryList(this.#proc)
    this.#listed = names !== null
    // PIDs grow with time: the newest ones are the programs, the oldest the kernel's own.
    const pids = (names ?? []).map(Number).filter((pid) => Number.isInteger(pid) && pid > 0)
    pids.sort((a, b) => b - a)
    const computing = new Set(this.#compute?.list() ?? [])
    const known = new Map<number, Known>()
    this.#hidden = false
    for (const pid of pids.slice(0, MAX_PIDS)) {
      const one = this.#known.get(pid) ?? { firstSeenMs: nowMs, lookAtMs: nowMs, files: [], computes: false, hidden: false }
      known.set(pid, one)
      if (one.files.length > 0 || one.computes || computing.has(pid) || nowMs >= one.lookAtMs) {
        this.#look(pid, one)
        one.lookAtMs = nowMs + Math.min(LOOK_AGAIN_MS, Math.max(SCAN_INTERVAL_MS, nowMs - one.firstSeenMs))
      }
      if (one.hidden) this.#hidden = true
    }
    this.#known = known
  }

  /** Finds the device files that a process has open. */
  #look(pid: number, known: Known): void {
    const folder = join(this.#proc, String(pid), 'fd')
    const before = new Map(known.files.map((file) => [file.key, file]))
    const found = new Map<string, OpenFile>()
    const parse = this.#driver.parseClient
    known.computes = false
    for (const descriptor of this.#descriptors(folder, known)) {
      const target = tryReadLink(`${folder}/${descriptor}`)
      if (target !== null && target === this.#driver.compute?.deviceFile) known.computes = true
      if (!target?.startsWith('/dev/dri/')) continue
      const path = join(this.#proc, String(pid), 'fdinfo', descriptor)
      const client = parse(parseFields(tryReadSmallFile(path) ?? ''))
      if (client === null || found.has(keyOf(client))) continue
      found.set(keyOf(client), before.get(keyOf(client))?.at(path) ?? new OpenFile(path, client, parse))
    }
    known.files = [...found.values()]
  }

  #descriptors(folder: string, known: Known): string[] {
    known.hidden = false
    try {
      return readdirSync(folder).slice(0, MAX_DESCRIPTORS)
    } catch (error) {
      // A process that ended in the meantime hides nothing.
      known.hidden = ['EACCES', 'EPERM'].includes(errorCode(error))
      return []
    }
  }
}

/** In a container with a numbering of its own. */
function inPidNamespace(proc: string): boolean {
  const namespace = tryReadLink(join(proc, 'self/ns/pid'))
  return namespace !== null && namespace !== INITIAL_PID_NAMESPACE
}
