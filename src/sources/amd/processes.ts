/** Who uses which card: open device files (fdinfo) joined with what the compute driver (kfd) lists. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { GpuProcess, Reading } from '../../core/model.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import { errorCode, tryList, tryReadLink } from '../../core/system-file.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { parseFdinfo } from './fdinfo.ts'
import { KfdProcesses } from './kfd-processes.ts'
import { type CardUse, joinUses, keyOf, OpenFile } from './process-use.ts'

const SCAN_INTERVAL_MS = 2000
/** Listing a process's descriptors is expensive: one without a GPU is listed again when its known age has doubled, at most this late. */
const LOOK_AGAIN_MS = 30_000
const MAX_PIDS = 4096
const MAX_DESCRIPTORS = 4096
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]'

/** What the list needs to know of a card. */
export interface ProcessCard {
  readonly address: string | null
  readonly kfdIds: readonly string[]
  readonly apu: boolean
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
const HIDDEN = "other users' processes are listed only if they use compute (kfd): run as root to see all"

export class ProcessList {
  readonly #proc: string
  readonly #kfd: KfdProcesses | null
  #known = new Map<number, Known>()
  #scanAtMs = Number.NEGATIVE_INFINITY
  #listed = false
  #hidden = false

  constructor(root: string) {
    this.#proc = join(root, 'proc')
    // kfd speaks of the host's PIDs; in a container they are not those of our /proc and cannot be joined with them.
    this.#kfd = inPidNamespace(this.#proc) ? null : new KfdProcesses(root)
  }

  /** Why the list is not the whole truth, or null. */
  get incomplete(): string | null {
    if (this.#kfd === null) return IN_CONTAINER
    return this.#hidden ? HIDDEN : null
  }

  /** By PCI address; null when /proc cannot be listed. */
  read(tick: SourceTick, cards: readonly ProcessCard[]): ReadonlyMap<string, readonly GpuProcess[]> | null {
    const scan = tick.monotonicMs >= this.#scanAtMs
    if (scan) this.#scan(tick.monotonicMs)
    if (!this.#listed) return null
    const lists = new Map<string, readonly GpuProcess[]>()
    const open = this.#openUses(tick.monotonicMs, scan)
    for (const card of cards) {
      if (card.address === null) continue
      const compute = this.#kfd?.read(card.kfdIds, tick.monotonicMs, scan) ?? new Map<number, Reading>()
      lists.set(card.address, joinUses(open.get(card.address) ?? new Map(), compute, card.apu))
    }
    return lists
  }

  close(): void {
    this.#kfd?.close()
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
    const computing = new Set(this.#kfd?.list() ?? [])
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
    known.computes = false
    for (const descriptor of this.#descriptors(folder, known)) {
      const target = tryReadLink(`${folder}/${descriptor}`)
      if (target === '/dev/kfd') known.computes = true
      if (!target?.startsWith('/dev/dri/')) continue
      const path = join(this.#proc, String(pid), 'fdinfo', descriptor)
      const client = parseFdinfo(tryReadSmallFile(path) ?? '')
      if (client === null || found.has(keyOf(client))) continue
      found.set(keyOf(client), before.get(keyOf(client))?.at(path) ?? new OpenFile(path, client))
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
