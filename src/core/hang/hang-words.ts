/** The sentences about ranks that stand still; without a capital and a full stop. */
import { byKey } from './by-key.ts'
import type { Mismatch } from './group-votes.ts'
import { kernelWords, mainThread } from './stack-place.ts'
import type { Standing } from './standing.ts'

const MOST_NAMED = 4
const MOST_PLACES = 3

/** `rank 3 (gpu 3) is in dataloader.py:1286 waiting for a worker`, in one clause for each place. */
export function culpritText(ranks: readonly Standing[], isOnly: boolean): string {
  const [only] = ranks
  if (isOnly && only?.at) return `main thread in ${only.at.place ?? 'an unknown place'}${comma(only.at.words)}${from(only)}`
  const clauses = byKey(ranks, (one) => whereText(one))
  const shown = [...clauses].slice(0, MOST_PLACES).map(([where, those]) => clauseText(those, where, isOnly))
  const more = clauses.size - shown.length
  return [...shown, ...(more > 0 ? [`${more} more elsewhere`] : [])].join(', ')
}

/** `7 ranks wait for it in all_reduce #41,210`; null: nobody does. */
export function waitText(waiting: readonly Standing[], culprits: number): string | null {
  if (waiting.length === 0) return null
  const collective = commonCollective(waiting)
  const who = waiting.length === 1 ? `${nameText(waiting)} waits` : `${waiting.length} ranks wait`
  return `${who} for ${culprits === 1 ? 'it' : 'them'}${collective === null ? '' : ` in ${collective}`}`
}

export function allWaitText(waiting: readonly Standing[]): { sentence: string; place: string | null } {
  const place = commonCollective(waiting)
  const who = waiting.length === 1 ? `${nameText(waiting)} waits` : `all ${waiting.length} ranks wait`
  const why = waiting.length === 1 ? 'for the others' : 'for each other'
  return { place, sentence: place === null ? `${who} ${why}` : `${who} in ${place}, and all have called it: the network or a GPU is stuck` }
}

/** `rank 0 is in broadcast #12, 7 ranks are in all_reduce #12: these do not match` */
export function mismatchText({ seq, fewer, fewerCall, more, moreCall }: Mismatch): string {
  const clause = (ranks: readonly Standing[], call: string) =>
    `${nameText(ranks)} ${isOrAre(ranks)} in ${call.replace(/^\S+/, (op) => `${op} ${numbered(seq)}`)}`
  return `${clause(fewer, fewerCall)}, ${clause(more, moreCall)}: these do not match`
}

export function placesText(places: readonly (readonly Standing[])[]): string {
  const shown = places.slice(0, MOST_PLACES).map((ranks) => culpritText(ranks, false))
  return `${shown.join('; ')}${places.length > MOST_PLACES ? `; ${places.length - MOST_PLACES} more places` : ''}`
}

/** `rank 3 (gpu 3)`, `ranks 2 and 5`, `ranks 0, 1, 2, 3 and 4 more` */
export function nameText(ranks: readonly Standing[]): string {
  const [first] = ranks
  if (first && ranks.length === 1) return `rank ${first.rank}${first.gpu === null ? '' : ` (gpu ${first.gpu})`}`
  const named = ranks.slice(0, MOST_NAMED).map(({ rank }) => String(rank))
  const more = ranks.length - named.length
  const list = more > 0 ? [...named, `${more} more`] : named
  return `ranks ${list.slice(0, -1).join(', ')} and ${list.at(-1)}`
}

/** What most of them wait in: `all_reduce #41,210`. */
function commonCollective(waiting: readonly Standing[]): string | null {
  const votes = byKey(waiting, collectiveOf)
  const [most] = [...votes].filter(([name]) => name !== null).sort(([, a], [, b]) => b.length - a.length)
  return most?.[0] ?? null
}

function collectiveOf({ stacks, at }: Standing): string | null {
  const pending = stacks?.collectives.find((group) => group.pending !== null)?.pending
  if (pending) return `${pending.op}${pending.seq === null ? '' : ` ${numbered(pending.seq)}`}`
  return at?.op ?? (at?.doing === 'backward' ? 'the backward pass' : null)
}

function numbered(seq: number): string {
  return `#${seq.toLocaleString('en-US')}`
}

function clauseText(ranks: readonly Standing[], where: string, isOnly: boolean): string {
  const [first] = ranks
  if (first?.isGone) return `the process${ranks.length === 1 ? '' : 'es'} of ${nameText(ranks)} ${isOrAre(ranks)} gone`
  if (first?.at === null || first === undefined) {
    const who = isOnly ? 'the program' : nameText(ranks)
    return `${who} ${ranks.length === 1 ? 'does' : 'do'} not answer${where}`
  }
  return `${nameText(ranks)} ${isOrAre(ranks)} in ${where}`
}

function whereText(one: Standing): string {
  if (one.isGone) return ''
  if (one.at !== null) return `${one.at.place ?? 'an unknown place'}${one.at.words === null ? '' : ` ${one.at.words}`}${from(one)}`
  if (one.stacks === null) return ''
  if (one.stacks.reason !== null) return `: ${one.stacks.reason}`
  const words = kernelWords(mainThread(one.stacks))
  return words === null ? '' : `, its main thread is ${words}`
}

function from({ at }: Standing): string {
  return at?.own ? ` (from ${at.own})` : ''
}

function comma(words: string | null): string {
  return words === null ? '' : `, ${words}`
}

function isOrAre(ranks: readonly Standing[]): string {
  return ranks.length === 1 ? 'is' : 'are'
}
