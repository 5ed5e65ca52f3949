/**
 * Memory of whole process trees: of the processes of runs, and of processes on GPUs. Anonymous memory only, so that neither files in the
 * cache nor shared memory count, and of descendants only what they added: a forked worker starts with its parent's pages.
 */
import { join } from 'node:path'
import type { Reading, TreeMemory } from '../../core/model.ts'
import { parseProcessStat } from '../../core/process-identity.ts'
import type { RunProcessRef, SourceTick } from '../../core/source-contract.ts'
import { tryList } from '../../core/system-file.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { MemoryGroups } from './memory-groups.ts'

/** Leaks of host memory take minutes; reading more often costs more than it tells. */
const READ_EVERY_MS = 2000
/** Children come and go seldom; one that has gone makes the next look early. */
const WALK_EVERY_MS = 30_000
const MOST_TREES = 64
const MOST_PROCESSES = 512
const MOST_THREADS = 64

interface Member {
  readonly startTicks: number
  /** What it had when it was first seen; 0 for the process at the top. */
  readonly inherited: number
}

interface Tree {
  readonly run: string | null
  members: Map<number, Member>
  walkDueMs: number
}

export class ProcessTrees {
  readonly #proc: string
  readonly #pageBytes: number
  readonly #groups: MemoryGroups
  #roots = new Map<number, string | null>()
  #trees = new Map<number, Tree>()
  #dueMs = Number.NEGATIVE_INFINITY

  constructor(root: string, pageBytes: number) {
    this.#proc = join(root, 'proc')
    this.#pageBytes = pageBytes
    this.#groups = new MemoryGroups(root)
  }

  watch(runs: readonly RunProcessRef[]): void {
    this.#roots = new Map(runs.slice(0, MOST_TREES).map(({ pid, run }) => [pid, run]))
  }

  /** `gpuProcesses`: those that are known to be what their PIDs say. null: not due yet. */
  read(tick: SourceTick, gpuProcesses: readonly number[], memoryTotalBytes: Reading): readonly TreeMemory[] | null {
    if (tick.monotonicMs < this.#dueMs) return null
    this.#dueMs = tick.monotonicMs + READ_EVERY_MS
    const roots = new Map(this.#roots)
    for (const pid of gpuProcesses) if (roots.size < MOST_TREES && !roots.has(pid)) roots.set(pid, null)
    const trees = new Map<number, Tree>()
    for (const [pid, run] of roots) {
      const known = this.#trees.get(pid)
      trees.set(pid, known && known.run === run ? known : { run, members: new Map(), walkDueMs: Number.NEGATIVE_INFINITY })
    }
    this.#trees = trees
    for (const [pid, tree] of trees) if (tick.monotonicMs >= tree.walkDueMs) this.#walk(pid, tree, tick.monotonicMs)
    const found: TreeMemory[] = []
    for (const [pid, tree] of trees) {
      // The ranks of a run below its launcher, and processes on GPUs inside a run, are part of that tree.
      if (this.#isInside(pid, tree.run)) continue
      const read = this.#read(pid, tree, memoryTotalBytes, tick.monotonicMs)
      if (read) found.push(read)
    }
    return found
  }

  #isInside(pid: number, run: string | null): boolean {
    for (const [root, tree] of this.#trees)
      if (root !== pid && tree.members.has(pid) && (tree.run === run || run === null) && !this.#trees.get(pid)?.members.has(root))
        return true
    return false
  }

  #walk(root: number, tree: Tree, nowMs: number): void {
    tree.walkDueMs = nowMs + WALK_EVERY_MS
    const members = new Map<number, Member>()
    const queue = [root]
    for (let pid = queue.shift(); pid !== undefined && members.size < MOST_PROCESSES; pid = queue.shift()) {
      if (members.has(pid)) continue
      const stat = parseProcessStat(tryReadSmallFile(`${this.#proc}/${pid}/stat`) ?? '')
      if (stat === null) continue
      const before = tree.members.get(pid)
      const isSame = before?.startTicks === stat.startTicks
      members.set(pid, isSame ? before : { startTicks: stat.startTicks, inherited: pid === root ? 0 : (this.#anonymous(pid) ?? 0) })
      queue.push(...this.#children(pid))
    }
    tree.members = members
  }

  #read(root: number, tree: Tree, memoryTotalBytes: Reading, nowMs: number): TreeMemory | null {
    let bytes = 0
    let processes = 0
    for (const [pid, { inherited }] of tree.members) {
      const now = this.#anonymous(pid)
      if (now === null) {
        if (pid === root) return null
        tree.walkDueMs = nowMs
        continue
      }
      processes++
      bytes += Math.max(0, now - inherited)
    }
    if (processes === 0) return null
    return { pid: root, run: tree.run, processes, bytes, limit: this.#groups.limitOf(root, memoryTotalBytes, nowMs) }
  }

  /** `size resident shared …` in pages; shared are those of files and of shared memory. */
  #anonymous(pid: number): Reading {
    const [, resident, shared] = (tryReadSmallFile(`${this.#proc}/${pid}/statm`) ?? '').split(' ').map(Number)
    if (resident === undefined || shared === undefined || !(resident >= shared)) return null
    return (resident - shared) * this.#pageBytes
  }

  #children(pid: number): number[] {
    const threads = tryList(`${this.#proc}/${pid}/task`) ?? []
    return threads.slice(0, MOST_THREADS).flatMap((thread) =>
      (tryReadSmallFile(`${this.#proc}/${pid}/task/${thread}/children`) ?? '')
        .split(' ')
        .map(Number)
        .filter((child) => child > 0),
    )
  }
}
