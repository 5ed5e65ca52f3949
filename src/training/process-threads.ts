/** What the kernel shows of the threads of a process that does not answer: its state, and where in the kernel it waits. */
import { readdirSync } from 'node:fs'
import type { RankStacks, ThreadStack } from '../core/hang/rank-stacks.ts'
import type { Reading } from '../core/model.ts'
import { parseProcessStat } from '../core/process-identity.ts'
import { tryReadText } from '../core/system-file.ts'
import { ProcessTree } from './process-tree.ts'

const MOST_THREADS = 32
/** Place in the kernel → system call. The kernel shows the call itself only to whoever may trace the process. */
const PLACES: readonly (readonly [RegExp, string])[] = [
  [/futex/, 'futex'],
  [/nanosleep/, 'clock_nanosleep'],
  [/ep_poll|epoll/, 'epoll_wait'],
  [/poll|select/, 'poll'],
  [/pipe_read/, 'read'],
  [/pipe_write/, 'write'],
  [/do_wait/, 'wait4'],
  [/wait_data|recv/, 'recvfrom'],
  [/flock|lock_file|posix_lock/, 'flock'],
]

/** null: no such process, or no /proc. */
export function procStacks(pid: number, rank: number, at: number, proc = '/proc'): RankStacks | null {
  const ids = threadsOf(pid, proc)
  if (ids.length === 0) return null
  const threads = ids.slice(0, MOST_THREADS).flatMap((id): ThreadStack[] => {
    const folder = `${proc}/${pid}/task/${id}`
    const stat = parseProcessStat(tryReadText(`${folder}/stat`) ?? '')
    if (stat === null) return []
    const told = (tryReadText(`${folder}/wchan`) ?? '').trim()
    const wchan = told === '' || told === '0' ? null : told.slice(0, 100)
    const syscall = wchan === null ? null : (PLACES.find(([place]) => place.test(wchan))?.[1] ?? null)
    return [{ name: stat.name, isMain: id === pid, state: stat.state, syscall, wchan, frames: [] }]
  })
  return { rank, pid, at, from: 'proc', moves: null, phase: null, threads, collectives: [], reason: null }
}

/** Which processes of a run without an SDK are its ranks: those that a launcher gave a rank, else the one with the most threads. */
export function ranksBelow(root: number, proc = '/proc'): readonly { readonly pid: number; readonly rank: number }[] {
  const pids = [...new ProcessTree(root).pids()].sort((a, b) => a - b)
  const ranks = new Map<number, number>()
  for (const pid of pids) {
    const rank = givenRank(tryReadText(`${proc}/${pid}/environ`))
    // Workers of a rank inherit it, and came later.
    if (rank !== null && !ranks.has(rank)) ranks.set(rank, pid)
  }
  if (ranks.size > 0) return [...ranks].map(([rank, pid]) => ({ pid, rank }))
  const [pid] = pids.toSorted((a, b) => threadsOf(b, proc).length - threadsOf(a, proc).length)
  return pid === undefined ? [] : [{ pid, rank: 0 }]
}

function givenRank(environ: string | null): Reading {
  const found = environ === null ? null : /(?:^|\0)(?:RANK|OMPI_COMM_WORLD_RANK|SLURM_PROCID)=(\d{1,7})\0/.exec(environ)
  return found ? Number(found[1]) : null
}

function threadsOf(pid: number, proc: string): readonly number[] {
  try {
    return readdirSync(`${proc}/${pid}/task`).map(Number)
  } catch {
    // It ended during the look, or belongs to somebody else.
    return []
  }
}
