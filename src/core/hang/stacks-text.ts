/** Stacks as lines for a terminal: ranks that stand in the same place together. */
import { formatDuration, printable } from '../format.ts'
import { byKey } from './by-key.ts'
import type { GroupProgress, RankStacks, ThreadStack } from './rank-stacks.ts'

/** `all`: every thread of every rank, else the main threads. */
export function stacksText(ranks: readonly RankStacks[], all: boolean): readonly string[] {
  const groups = byKey(ranks, (rank) => (all ? String(rank.rank) : threadLines(rank, false).join('\n') + rank.reason))
  return [...groups.values()].flatMap((alike, index) => {
    const [first] = alike
    if (!first) return []
    return [...(index === 0 ? [] : ['']), headOf(alike), ...alike.flatMap(collectiveLines), ...threadLines(first, all)]
  })
}

function headOf(ranks: readonly RankStacks[]): string {
  const [first] = ranks
  const who =
    ranks.length === 1 ? `rank ${first?.rank}, PID ${first?.pid ?? 'unknown'}` : `ranks ${ranks.map(({ rank }) => rank).join(', ')}`
  const phase = first?.phase ? `, phase ${first.phase}` : ''
  const moves = ranks.some((rank) => rank.moves === true) ? ', moves' : ''
  return printable(`${who}${first?.from === 'proc' ? ' (does not answer; what the kernel shows)' : `${phase}${moves}`}`)
}

/** `  group 0 (default_pg): all_reduce #46 of [[110]] Float, open for 3.3 s` */
function collectiveLines({ rank, collectives }: RankStacks): readonly string[] {
  return collectives.map((group) =>
    printable(`  rank ${rank}, group ${group.group}${group.description ? ` (${group.description})` : ''}: ${collectiveText(group)}`),
  )
}

export function collectiveText({ last, op, pending }: GroupProgress): string {
  const done = `last call ${op ?? ''} #${last ?? '?'}`.replace('  ', ' ')
  if (pending === null) return `${done}, done`
  const since = pending.seconds === null ? '' : `, open for ${formatDuration(pending.seconds * 1000)}`
  return `${pending.op} #${pending.seq ?? '?'} of ${pending.sizes} ${pending.dtypes.replace(/[[\]']/g, '')}${since}; ${done}`
}

function threadLines({ threads, reason }: RankStacks, all: boolean): readonly string[] {
  if (reason !== null) return [`  ${printable(reason)}`]
  const shown = all ? threads : threads.filter(({ isMain }) => isMain)
  const rest = threads.length - shown.length
  return [
    ...shown.flatMap((thread) => [`  ${printable(threadText(thread))}`, ...thread.frames.map((frame) => `    ${frameLine(frame)}`)]),
    ...(rest > 0 ? [`  and ${rest} other thread${rest === 1 ? '' : 's'} (--rank shows them)`] : []),
  ]
}

/** `MainThread (waits in futex)` */
export function threadText({ name, state, syscall, wchan }: ThreadStack): string {
  const where = syscall ?? wchan
  const doing =
    state === 'R' ? 'runs' : state === null ? '' : `${state === 'D' ? 'is stuck' : 'waits'}${where === null ? '' : ` in ${where}`}`
  return doing === '' ? name : `${name} (${doing})`
}

/** `torch/autograd/graph.py:1113 in _engine_run_backward`; files of the program with their folder. */
export function frameLine({ file, line, function: name }: ThreadStack['frames'][number]): string {
  return printable(`${file.replace(/^.*\/(site|dist)-packages\//, '')}:${line} in ${name}`)
}
