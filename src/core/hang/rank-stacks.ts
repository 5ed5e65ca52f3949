/** Where one rank of a run stands: the stacks of its threads, and the last collective of each of its process groups. */
import type { Reading } from '../model.ts'

export interface StackFrame {
  readonly file: string
  readonly line: number
  readonly function: string
}

export interface ThreadStack {
  readonly name: string
  readonly isMain: boolean
  /** Of the kernel: R runs, S waits, D waits and cannot be interrupted; null: unknown. */
  readonly state: string | null
  /** The system call it is in, and the place in the kernel where it waits. */
  readonly syscall: string | null
  readonly wchan: string | null
  /** Innermost first; empty where only the kernel was asked. */
  readonly frames: readonly StackFrame[]
}

export interface PendingCollective {
  readonly seq: Reading
  readonly op: string
  readonly isP2p: boolean
  /** Of the flight recorder: scheduled, started. */
  readonly state: string
  readonly sizes: string
  readonly dtypes: string
  readonly seconds: Reading
}

export interface GroupProgress {
  readonly group: string
  readonly description: string | null
  readonly ranks: string | null
  /** Sequence numbers of the collective that was called last and of the one that was done last. */
  readonly last: Reading
  readonly completed: Reading
  readonly op: string | null
  /** The first one that is not done; null: none. */
  readonly pending: PendingCollective | null
}

export interface RankStacks {
  readonly rank: number
  readonly pid: Reading
  readonly at: number
  /** sdk: the program said it; proc: it did not answer, this is what the kernel shows. */
  readonly from: 'sdk' | 'proc'
  /** Whether its main thread moved while it was looked at; null: unknown. */
  readonly moves: boolean | null
  readonly phase: string | null
  readonly threads: readonly ThreadStack[]
  readonly collectives: readonly GroupProgress[]
  /** Why there are no stacks; null: there are. */
  readonly reason: string | null
}

const MOST_KEPT_FRAMES = 2000

/** What is kept with the run: the main threads of all ranks first, then the others, as many as there is room for. */
export function keptStacks(ranks: readonly RankStacks[]): readonly RankStacks[] {
  let room = MOST_KEPT_FRAMES
  const take = (thread: ThreadStack): ThreadStack | null => {
    if (room <= 0) return null
    const frames = thread.frames.slice(0, room)
    room -= Math.max(1, frames.length)
    return { ...thread, frames }
  }
  const mains = ranks.map(({ threads }) => threads.filter(({ isMain }) => isMain).map(take))
  return ranks.map((rank, index) => {
    const others = rank.threads.filter(({ isMain }) => !isMain).map(take)
    return { ...rank, threads: [...(mains[index] ?? []), ...others].filter((thread) => thread !== null) }
  })
}
