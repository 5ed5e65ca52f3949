/** Who holds a run up: the ranks that the others wait for, by sequence numbers of collectives, else by a vote over the stacks. */

import type { HangKind, HangVerdict, Reading } from '../model.ts'
import { byKey } from './by-key.ts'
import { behindIn, mismatchIn } from './group-votes.ts'
import { allWaitText, culpritText, mismatchText, placesText, waitText } from './hang-words.ts'
import { type RankView, type Standing, standingsOf } from './standing.ts'

export const HANG_KINDS = [
  'gone',
  'behind',
  'mismatch',
  'silent',
  'all_wait',
  'same_place',
  'places',
  'unknown',
] as const satisfies readonly HangKind[]

interface Chosen extends Pick<HangVerdict, 'kind' | 'sentence' | 'place'> {
  readonly culprits: readonly Standing[]
}

export function hangVerdict(ranks: readonly RankView[], worldSize: Reading): HangVerdict {
  const all = standingsOf(ranks, worldSize)
  const { kind, culprits, sentence, place } = choose(all, Math.max(all.length, worldSize ?? 1) === 1)
  const unheard = all.length === 0 ? 0 : Math.max(0, (worldSize ?? 0) - all.length)
  const rest = unheard === 0 ? '' : `; ${unheard} of ${worldSize} ranks ${unheard === 1 ? 'is' : 'are'} not known here`
  return {
    kind,
    sentence: sentence + rest,
    culprits: culprits.map(({ rank }) => rank),
    waiting: all.filter((one) => one.waits && !culprits.includes(one)).map(({ rank }) => rank),
    place,
    isStuck: kind !== 'unknown' && !all.some(isBusy),
  }
}

function choose(all: readonly Standing[], isOnly: boolean): Chosen {
  const silent = all.filter(({ at, isGone }) => at === null && !isGone)
  const elsewhere = all.filter(({ at, waits }) => at !== null && !waits)
  const waiting = all.filter(({ waits }) => waits)
  const gone = all.filter(({ isGone }) => isGone)
  const blame = (kind: Chosen['kind'], culprits: readonly Standing[]): Chosen => {
    const others = waiting.filter((one) => !culprits.includes(one))
    const sentence = [culpritText(culprits, isOnly), waitText(others, culprits.length)].filter((part) => part !== null).join('; ')
    return { kind, culprits, sentence, place: culprits[0]?.at?.place ?? null }
  }
  if (gone.length > 0) return blame('gone', gone)
  const behind = behindIn(all)
  if (behind?.isEnd) return blame('behind', behind.ranks)
  const mismatch = mismatchIn(all)
  if (mismatch !== null) return { kind: 'mismatch', culprits: mismatch.fewer, sentence: mismatchText(mismatch), place: mismatch.fewerCall }
  if (waiting.length > 0 && elsewhere.length > 0) return blame('behind', elsewhere)
  if (waiting.length > 0 && silent.length > 0) return blame('silent', silent)
  // They wait for each other in different groups.
  if (behind !== null) return blame('behind', behind.ranks)
  if (waiting.length > 0) return { kind: 'all_wait', culprits: [], ...allWaitText(waiting) }
  if (elsewhere.length > 0) return byPlace(elsewhere, silent, blame)
  if (isOnly && silent[0]?.stacks) return blame('silent', silent)
  return { kind: 'unknown', culprits: [], sentence: 'no rank answers', place: null }
}

/** Nobody waits for another: the ranks where most are not, if most are in one place. */
function byPlace(
  ranks: readonly Standing[],
  silent: readonly Standing[],
  blame: (kind: Chosen['kind'], those: readonly Standing[]) => Chosen,
): Chosen {
  const places = [...byKey(ranks, ({ at }) => `${at?.place} ${at?.own}`).values()].sort((a, b) => b.length - a.length)
  const [most = []] = places
  const odd = [...ranks.filter((one) => !most.includes(one)), ...silent]
  if (odd.length === 0) return ranks.length === 1 ? blame('same_place', ranks) : { ...blame('same_place', ranks), culprits: [] }
  if (most.length <= odd.length)
    return { kind: 'places', culprits: [], place: null, sentence: placesText([...places, ...(silent.length > 0 ? [silent] : [])]) }
  const blamed = blame('behind', odd)
  return { ...blamed, sentence: `${blamed.sentence}; ${culpritText(most, false)}` }
}

const HARMLESS = /^(writing|reading|sending|receiving|running)$/

/** It goes on, or does something that takes long and ends. */
function isBusy({ stacks, at, waits }: Standing): boolean {
  if (waits || at === null) return false
  return (
    stacks?.moves === true || at.doing === 'saving' || at.doing === 'compiling' || (at.doing === 'other' && HARMLESS.test(at.words ?? ''))
  )
}
