/** What is known of every rank of a run that stands still, from its SDK, the kernel and NCCL together. */
import { hostname } from 'node:os'
import type { RankStacks } from '../core/hang/rank-stacks.ts'
import type { RankView } from '../core/hang/standing.ts'
import type { Reading } from '../core/model.ts'
import { isStillRunning } from '../core/process-identity.ts'
import type { RasStatus } from './nccl-ras.ts'
import { procStacks, ranksBelow } from './process-threads.ts'
import type { RunRecord } from './run-record.ts'

export interface ViewsGiven {
  readonly run: RunRecord
  /** The ranks that sent steps, with their processes. */
  readonly ranks: ReadonlyMap<number, { readonly pid: Reading }>
  readonly answers: ReadonlyMap<number, RankStacks>
  readonly ras: RasStatus | null
  readonly gpuOf: (pid: number) => string | null
  readonly now: number
}

export function rankViews({ run, ranks, answers, ras, gpuOf, now }: ViewsGiven): readonly RankView[] {
  const isHere = run.host === null || run.host === hostname()
  const known = new Map([...ranks].map(([rank, { pid }]) => [rank, pid] as const))
  for (const [rank, { pid }] of answers) known.set(rank, pid)
  // A program without an SDK in it, or one that has not come to its first step.
  if (known.size === 0 && isHere && run.pid !== null) for (const { rank, pid } of ranksBelow(run.pid)) known.set(rank, pid)
  return [...known].map(([rank, pid]) => {
    const answer = answers.get(rank)
    const seen = run.processes.find((process) => process.pid === pid)
    const isGone = !answer && ((seen !== undefined && !isStillRunning(seen.pid, seen.start)) || isDead(ras, rank, run.worldSize))
    const stacks = answer ?? (isGone || pid === null || !isHere ? null : procStacks(pid, rank, now))
    return { rank, isGone, gpu: pid === null ? null : gpuOf(pid), stacks: stacks && withCalls(stacks, ras, run.worldSize) }
  })
}

/** A communicator of the whole world has the world's ranks. */
function isDead(ras: RasStatus | null, rank: number, worldSize: Reading): boolean {
  return ras?.communicators.some(({ size, ranks }) => size === worldSize && ranks.some((one) => one.rank === rank && one.isDead)) ?? false
}

/** Where PyTorch recorded no collectives, NCCL's own counts tell who is behind. */
function withCalls(stacks: RankStacks, ras: RasStatus | null, worldSize: Reading): RankStacks {
  if (ras === null || stacks.collectives.length > 0) return stacks
  const collectives = ras.communicators.flatMap(({ hash, size, ranks }) => {
    const own = ranks.find(({ rank, pid }) => (size === worldSize ? rank === stacks.rank : pid === stacks.pid && pid !== null))
    if (!own || own.calls === null) return []
    return [{ group: `nccl ${hash}`, description: null, ranks: null, last: own.calls, completed: null, op: null, pending: null }]
  })
  return { ...stacks, collectives }
}
