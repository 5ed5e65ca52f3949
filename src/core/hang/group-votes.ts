/** What the sequence numbers of collectives say: who has not joined one that others are in, and who called another one. */
import { byKey } from './by-key.ts'
import type { GroupProgress, PendingCollective } from './rank-stacks.ts'
import type { Standing } from './standing.ts'

interface Member {
  readonly standing: Standing
  readonly group: GroupProgress
}

export interface Behind {
  readonly ranks: readonly Standing[]
  /** None of them waits for somebody else in turn. */
  readonly isEnd: boolean
}

/** null: nobody is. Where groups depend on each other, the ranks at the end of the chain. */
export function behindIn(all: readonly Standing[]): Behind | null {
  const behind = new Set<Standing>()
  for (const members of groupsOf(all)) {
    const front = frontOf(members)
    if (front === null) continue
    for (const { standing, group } of members) if (group.last !== null && group.last < front) behind.add(standing)
  }
  if (behind.size === 0) return null
  const ends = [...behind].filter(({ waits }) => !waits)
  return { ranks: ends.length > 0 ? ends : [...behind], isEnd: ends.length > 0 }
}

export interface Mismatch {
  readonly seq: number
  readonly fewer: readonly Standing[]
  readonly fewerCall: string
  readonly more: readonly Standing[]
  readonly moreCall: string
}

/** Ranks that are in the same collective of a group by its number, but not by its name, size or type. */
export function mismatchIn(all: readonly Standing[]): Mismatch | null {
  for (const members of groupsOf(all)) {
    const open = members.flatMap(({ standing, group: { pending } }) =>
      pending?.seq == null || pending.isP2p ? [] : [{ standing, pending }],
    )
    const seq = Math.min(...open.map(({ pending }) => pending.seq ?? Number.POSITIVE_INFINITY))
    const calls = byKey(
      open.filter(({ pending }) => pending.seq === seq),
      ({ pending }) => callOf(pending),
    )
    if (calls.size < 2) continue
    const sorted = [...calls].sort(([, a], [, b]) => a.length - b.length)
    const [fewerCall, fewer] = sorted[0] ?? ['', []]
    const [moreCall, more] = sorted.at(-1) ?? ['', []]
    return { seq, fewerCall, moreCall, fewer: fewer.map(({ standing }) => standing), more: more.map(({ standing }) => standing) }
  }
  return null
}

/** Those whose tensors must be alike on all ranks. */
const ALIKE = /^_?(all_?reduce|broadcast|all_?gather(_base|_into_tensor)?|reduce_?scatter(_base|_tensor)?)$/i

/** `all_reduce of [[110]] Float`; without the tensors where ranks may have different ones. */
function callOf({ op, sizes, dtypes }: PendingCollective): string {
  return ALIKE.test(op) && sizes !== '' ? `${op} of ${sizes} ${dtypes.replace(/[[\]']/g, '')}`.trim() : op
}

/** The number of the first collective that somebody waits in; where that is not known, the highest that was called. */
function frontOf(members: readonly Member[]): number | null {
  const open = members.flatMap(({ group: { pending } }) => (pending === null || pending.isP2p || pending.seq === null ? [] : [pending.seq]))
  if (open.length > 0) return Math.min(...open)
  const last = members.flatMap((member) => (member.group.last === null ? [] : [member.group.last]))
  return last.length > 1 ? Math.max(...last) : null
}

function groupsOf(all: readonly Standing[]): Iterable<readonly Member[]> {
  const members = all.flatMap((standing) => (standing.stacks?.collectives ?? []).map((group): Member => ({ standing, group })))
  return byKey(members, ({ group }) => `${group.group} ${group.ranks ?? ''}`).values()
}
