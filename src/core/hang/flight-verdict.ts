/** Compares the collectives of all ranks, group by group, in the order of their numbers: who is missing, and what does not match. */
import type { Reading } from '../model.ts'
import { byKey } from './by-key.ts'
import type { FlightDump, FlightEntry } from './flight-dump.ts'

export const FLIGHT_FAULTS = ['missing', 'collective', 'size', 'type', 'state'] as const

/** The first collective of a group on which its ranks differ. */
export interface FlightFault {
  readonly kind: (typeof FLIGHT_FAULTS)[number]
  readonly seq: number
  /** The fewer ranks that differ; of `missing`, those that have not called it. */
  readonly ranks: readonly number[]
  readonly others: readonly number[]
  /** What each side called: `all_reduce [[110]] Float`. */
  readonly call: string | null
  readonly otherCall: string
  /** Where: the last call of a missing rank, else this call. */
  readonly place: string | null
  readonly otherPlace: string | null
  readonly lastSeq: Reading
}

export interface FlightGroup {
  readonly group: string
  readonly description: string | null
  readonly members: readonly number[]
  /** Members without a file. */
  readonly unread: readonly number[]
  /** Numbers of the collectives that were compared, and how many of them match. */
  readonly from: Reading
  readonly to: Reading
  readonly matching: number
  readonly fault: FlightFault | null
  /** Not done on all members that called it, though all did. */
  readonly open: { readonly seq: number; readonly call: string } | null
}

export interface FlightVerdict {
  readonly ranks: readonly number[]
  readonly groups: readonly FlightGroup[]
  /** Ranks to look at first. */
  readonly culprits: readonly number[]
}

export function flightVerdict(dumps: readonly FlightDump[]): FlightVerdict {
  const names = [...new Set(dumps.flatMap(({ entries }) => entries.filter(({ isP2p }) => !isP2p).map(({ group }) => group)))]
  const groups = names.map((name) => groupOf(name, dumps)).sort((a, b) => a.group.localeCompare(b.group, 'en', { numeric: true }))
  return { ranks: dumps.map(({ rank }) => rank).sort((a, b) => a - b), groups, culprits: culpritsOf(groups, dumps) }
}

interface Member {
  readonly rank: number
  readonly calls: ReadonlyMap<number, FlightEntry>
  readonly first: number
  readonly last: number
}

function groupOf(group: string, dumps: readonly FlightDump[]): FlightGroup {
  const all = dumps.map(({ rank, entries }) => memberOf(rank, entries, group))
  const told = dumps.find((dump) => dump.members.has(group))?.members.get(group)
  const ranks = told ?? all.filter(({ calls }) => calls.size > 0).map(({ rank }) => rank)
  const members = all.filter(({ rank }) => ranks.includes(rank)).sort((a, b) => a.rank - b.rank)
  const called = members.filter(({ calls }) => calls.size > 0)
  // A ring buffer forgets: only what no rank has forgotten can be compared. A rank that never called one forgot nothing.
  const from = Math.max(...called.map(({ first }) => first))
  const to = Math.max(...called.map(({ last }) => last))
  let [matching, fault, open]: [number, FlightFault | null, FlightGroup['open']] = [0, null, null]
  for (let seq = from; seq <= to && fault === null; seq++) {
    fault = faultAt(seq, members)
    if (fault !== null) break
    matching++
    const entry = called.map(({ calls }) => calls.get(seq)).find((one) => one && !one.isDone)
    if (entry && open === null) open = { seq, call: callOf(entry) }
  }
  const description = dumps.flatMap(({ entries }) => entries).find((entry) => entry.group === group)?.description ?? null
  return {
    ...{ group, description, members: ranks, unread: ranks.filter((rank) => !dumps.some((dump) => dump.rank === rank)) },
    ...{ from, to, matching, fault, open },
  }
}

function memberOf(rank: number, entries: readonly FlightEntry[], group: string): Member {
  const calls = new Map(entries.filter((entry) => entry.group === group && !entry.isP2p).map((entry) => [entry.seq, entry]))
  const seqs = [...calls.keys()]
  return { rank, calls, first: seqs.length === 0 ? 0 : Math.min(...seqs), last: seqs.length === 0 ? 0 : Math.max(...seqs) }
}

function faultAt(seq: number, members: readonly Member[]): FlightFault | null {
  const missing = members.filter(({ last }) => last < seq)
  const present = members.flatMap(({ rank, calls }) => {
    const entry = calls.get(seq)
    return entry ? [{ rank, entry }] : []
  })
  const [first] = present
  if (!first) return null
  if (missing.length > 0) {
    const [one] = missing
    const before = one?.calls.get(one.last)
    return {
      ...{ kind: 'missing', seq, ranks: missing.map(({ rank }) => rank), others: present.map(({ rank }) => rank) },
      ...{ call: before ? callOf(before) : null, otherCall: callOf(first.entry) },
      ...{ place: before ? placeOf(before) : null, otherPlace: placeOf(first.entry), lastSeq: one?.last ?? null },
    }
  }
  for (const [kind, keyOf] of CHECKS) {
    const sides = [...byKey(present, ({ entry }) => keyOf(entry)).values()].sort((a, b) => a.length - b.length)
    const [fewer, more] = [sides[0], sides.at(-1)]
    if (sides.length < 2 || !fewer?.[0] || !more?.[0]) continue
    return {
      ...{ kind, seq, ranks: fewer.map(({ rank }) => rank), others: more.map(({ rank }) => rank) },
      ...{ call: sideText(kind, fewer[0].entry), otherCall: sideText(kind, more[0].entry) },
      ...{ place: placeOf(fewer[0].entry), otherPlace: placeOf(more[0].entry), lastSeq: null },
    }
  }
  return null
}

/** Those whose input must have the same size on all ranks. */
const ALIKE = /^_?(all_?reduce|broadcast|reduce|all_?gather(_base|_into_tensor)?|reduce_?scatter(_base|_tensor)?)(_coalesced)?$/i

const CHECKS: readonly (readonly [Exclude<FlightFault['kind'], 'missing'>, (entry: FlightEntry) => string])[] = [
  ['collective', ({ op }) => op],
  ['size', ({ op, sizes }) => (ALIKE.test(op) ? sizes : '')],
  ['type', ({ dtypes }) => dtypes],
  ['state', ({ isDone, op }) => (/^(broadcast|reduce|scatter|gather)/.test(op) ? '' : String(isDone))],
]

function sideText(kind: FlightFault['kind'], entry: FlightEntry): string {
  return kind === 'state' ? `${callOf(entry)} (${entry.isDone ? 'completed' : entry.state})` : callOf(entry)
}

function callOf({ op, sizes, dtypes }: FlightEntry): string {
  return `${op}${sizes === '[]' ? '' : ` ${sizes}`}${dtypes === '' ? '' : ` ${dtypes}`}`
}

/** The program's own line that called it: `train.py:77 in step`. */
function placeOf({ frames }: FlightEntry): string | null {
  const own = frames.find(({ file }) => !/\/(site|dist)-packages\/|\/torch\/|\/lib(64)?\/python3/.test(file)) ?? frames[0]
  return own ? `${own.file.split(/[\\/]/).at(-1)}:${own.line} in ${own.function}` : null
}

/** The ranks that differ in a group, without those that wait in another one themselves. */
function culpritsOf(groups: readonly FlightGroup[], dumps: readonly FlightDump[]): readonly number[] {
  const odd = new Set(groups.flatMap(({ fault }) => fault?.ranks ?? []))
  const waits = (rank: number) => dumps.some((dump) => dump.rank === rank && dump.entries.some(({ isDone }) => !isDone))
  const ends = [...odd].filter((rank) => !waits(rank))
  return (ends.length > 0 ? ends : [...odd]).sort((a, b) => a - b)
}
