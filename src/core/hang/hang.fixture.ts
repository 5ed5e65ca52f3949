/** Ranks of made-up worlds that stand still. */
import type { GroupProgress, PendingCollective, RankStacks, StackFrame } from './rank-stacks.ts'
import type { RankView } from './standing.ts'

export const LIBRARY = '/venv/lib/python3.12/site-packages/torch'
export const TRAIN: StackFrame = { file: '/home/user/train.py', line: 77, function: 'main' }
const AT = 1_760_000_000_000

export function stacks(rank: number, frames: readonly StackFrame[], more: Partial<RankStacks> = {}): RankStacks {
  const main = { name: 'MainThread', isMain: true, state: 'S', syscall: 'futex', wchan: null, frames }
  return { rank, pid: 1000 + rank, at: AT, from: 'sdk', moves: false, phase: null, threads: [main], collectives: [], reason: null, ...more }
}

export function view(rank: number, frames: readonly StackFrame[], more: Partial<RankStacks> = {}): RankView {
  return { rank, gpu: String(rank), stacks: stacks(rank, frames, more), isGone: false }
}

export function group(last: number, pending: Partial<PendingCollective> | null = null, more: Partial<GroupProgress> = {}): GroupProgress {
  const open =
    pending === null
      ? null
      : { seq: last, op: 'all_reduce', isP2p: false, state: 'started', sizes: '[[110]]', dtypes: "['Float']", seconds: 3, ...pending }
  return {
    group: '0',
    description: 'default_pg',
    ranks: null,
    last,
    completed: open === null ? last : last - 1,
    op: 'all_reduce',
    pending: open,
    ...more,
  }
}

/** In an all_reduce that it called as number `seq`. */
export function waiter(rank: number, seq: number, more: Partial<RankStacks> = {}): RankView {
  const frames = [{ file: `${LIBRARY}/distributed/distributed_c10d.py`, line: 2900, function: 'all_reduce' }, TRAIN]
  return view(rank, frames, { collectives: [group(seq, {})], ...more })
}

/** Waits for a worker of its loader, before it calls number `seq`. */
export function loader(rank: number, seq: number, more: Partial<RankStacks> = {}): RankView {
  const file = `${LIBRARY}/utils/data/dataloader.py`
  const frames = [
    { file: '/usr/lib/python3.12/selectors.py', line: 398, function: 'PollSelector.select' },
    { file, line: 1286, function: '_MultiProcessingDataLoaderIter._try_get_data' },
    { file, line: 720, function: '_BaseDataLoaderIter.__next__' },
    TRAIN,
  ]
  return view(rank, frames, { collectives: [group(seq - 1)], ...more })
}

export function sleeper(rank: number, seq: number, line = 88): RankView {
  const main = { name: 'MainThread', isMain: true, state: 'S', syscall: 'clock_nanosleep', wchan: null }
  const frames = [{ file: '/home/user/work.py', line, function: 'rest' }, TRAIN]
  return view(rank, frames, { threads: [{ ...main, frames }], collectives: [group(seq - 1)] })
}

/** Nothing is known but that its process is there. */
export function mute(rank: number): RankView {
  return { rank, gpu: null, stacks: null, isGone: false }
}

export function gone(rank: number): RankView {
  return { rank, gpu: String(rank), stacks: null, isGone: true }
}
