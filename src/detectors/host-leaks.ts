/** Host memory of process trees, watched for leaks. What a run holds before its first steps, such as a dataset, is not growth. */
import { BoundedMap } from '../core/bounded-map.ts'
import { LeakWatch, type LeakWatchState } from '../core/memory/leak-watch.ts'
import type { FindingSubject, HostSample, Reading, TrainingStep, TreeMemory } from '../core/model.ts'
import { subjectOf } from './finding.ts'

const TREE_CAP = 64
const RUN_CAP = 256
/** Steps until caches and optimizer states are made. */
const FIRST_STEPS = 10
/** A process without steps is watched after this. */
const SETTLE_MS = 300_000
/** A tree that was not reported for this long is gone. */
const GONE_MS = 60_000
/** Growth is weighed against the process itself, not against a large host: memory of four times its size counts as what it may take. */
const OWN_SCALE = 4
const LEAST_SCALE_BYTES = 4 * 1024 ** 3

/** What workers keep within an epoch grows as steadily: a rise is a leak after this long … */
const PATIENCE_SECONDS = 600
/** … or at once, if memory will be full within this time. */
const URGENT_SECONDS = 1800

interface WatchedTree {
  readonly pid: number
  readonly run: string | null
  readonly firstAt: number
  seenAt: number
  /** null: not watched yet. */
  capacity: Reading
  /** In seconds; null: it does not. */
  risingSince: Reading
  readonly watch: LeakWatch
}

type SavedTree = Omit<WatchedTree, 'watch'> & { readonly watch: LeakWatchState }

export interface HostLeaksState {
  readonly trees: readonly SavedTree[]
  readonly steps: unknown
}

export interface TreeVerdict {
  readonly subject: FindingSubject
  readonly name: string
  readonly watch: LeakWatch
  readonly confirmed: boolean
  readonly capacity: number
  /** Until the host, or the limit of the processes, is full. */
  readonly roomBytes: Reading
}

export class HostLeaks {
  readonly #caution: number
  readonly #trees = new Map<number, WatchedTree>()
  readonly #steps = new BoundedMap<string, number>(RUN_CAP, { isRenewed: true })
  /** Recordings of earlier versions have none. */
  hasTrees = false

  constructor(caution: number) {
    this.#caution = caution
  }

  noteStep({ run }: TrainingStep): void {
    const before = this.#steps.get(run) ?? 0
    if (before < FIRST_STEPS) this.#steps.set(run, before + 1)
  }

  runEnded(id: string): void {
    this.#steps.delete(id)
    for (const [pid, { run }] of this.#trees) if (run === id) this.#trees.delete(pid)
  }

  take(sample: HostSample): readonly TreeVerdict[] {
    const verdicts: TreeVerdict[] = []
    for (const tree of sample.trees ?? []) {
      this.hasTrees = true
      const verdict = this.#tree(tree, sample)
      if (verdict) verdicts.push(verdict)
    }
    return verdicts
  }

  /** What has not been reported for a while, once. */
  gone(at: number): readonly FindingSubject[] {
    const subjects: FindingSubject[] = []
    for (const [pid, { run, seenAt }] of this.#trees) {
      if (at - seenAt < GONE_MS && at >= seenAt - GONE_MS) continue
      this.#trees.delete(pid)
      subjects.push(subjectOfTree(pid, run))
    }
    return subjects
  }

  snapshot(): HostLeaksState {
    return { trees: Array.from(this.#trees.values(), (tree) => ({ ...tree, watch: tree.watch.snapshot() })), steps: this.#steps.saved() }
  }

  /** An earlier version kept none. */
  restore(saved: HostLeaksState | undefined): void {
    this.#trees.clear()
    this.#steps.load(saved?.steps ?? [])
    for (const { watch: state, ...tree } of saved?.trees ?? []) {
      const watch = new LeakWatch('seconds', this.#caution)
      watch.restore(state)
      this.#trees.set(tree.pid, { ...tree, watch })
    }
  }

  #tree(tree: TreeMemory, sample: HostSample): TreeVerdict | null {
    const { at, memoryTotalBytes, swapTotalBytes } = sample
    const limit = tree.limit?.limitBytes ?? (memoryTotalBytes === null ? null : memoryTotalBytes + (swapTotalBytes ?? 0))
    if (limit === null || limit <= 0) return null
    let known = this.#trees.get(tree.pid)
    if (known?.run !== tree.run) {
      if (known === undefined && this.#trees.size >= TREE_CAP) return null
      known = {
        pid: tree.pid,
        run: tree.run,
        firstAt: at,
        seenAt: at,
        capacity: null,
        risingSince: null,
        watch: new LeakWatch('seconds', this.#caution),
      }
      this.#trees.set(tree.pid, known)
    }
    known.seenAt = at
    if (known.capacity === null) {
      if (!this.#hasSettled(known, at)) return null
      known.capacity = Math.min(limit, Math.max(LEAST_SCALE_BYTES, OWN_SCALE * tree.bytes))
    }
    const { watch, capacity } = known
    const confirmed = watch.push({ at, position: at / 1000, bytes: tree.bytes, capacityBytes: capacity })
    known.risingSince = watch.leak === null ? null : Math.min(known.risingSince ?? watch.leak.from, watch.leak.from)
    const roomBytes = roomOf(tree, sample)
    return {
      subject: subjectOfTree(tree.pid, tree.run),
      name: `${tree.run === null ? `Process ${tree.pid}` : `Run ${tree.run}`}${tree.processes > 1 ? ` (${tree.processes} processes)` : ''}`,
      watch,
      confirmed: confirmed && isDue(known, at, roomBytes),
      capacity,
      roomBytes,
    }
  }

  #hasSettled({ run, firstAt }: WatchedTree, at: number): boolean {
    const steps = run === null ? 0 : (this.#steps.get(run) ?? 0)
    return steps >= FIRST_STEPS || (steps === 0 && at - firstAt >= SETTLE_MS)
  }
}

function isDue({ watch, capacity, risingSince }: WatchedTree, at: number, roomBytes: Reading): boolean {
  const perSecond = (watch.leak?.slope ?? 0) * (capacity ?? 0)
  return at / 1000 - (risingSince ?? at / 1000) >= PATIENCE_SECONDS || (roomBytes !== null && roomBytes <= perSecond * URGENT_SECONDS)
}

function subjectOfTree(pid: number, run: string | null): FindingSubject {
  return run === null ? subjectOf({ pid }) : subjectOf({ run })
}

function roomOf({ limit }: TreeMemory, { memoryAvailableBytes, swapTotalBytes, swapUsedBytes }: HostSample): Reading {
  if (limit) return Math.max(0, limit.limitBytes - limit.usedBytes)
  return memoryAvailableBytes === null ? null : memoryAvailableBytes + Math.max(0, (swapTotalBytes ?? 0) - (swapUsedBytes ?? 0))
}
