/** The mails about usage: a summary for the owner of the server, and to each user what they used and could save. */
import type { Letter, LetterPart } from '../core/alert-contract.ts'
import { formatPercent, NOT_AVAILABLE } from '../core/format.ts'
import type { Reading } from '../core/model.ts'
import type { Figures } from './figures.ts'
import { type Period, periodText } from './period.ts'
import { UNKNOWN } from './row.ts'
import type { UsageGroup, UsageSummary } from './summary.ts'

export interface LetterOptions {
  readonly host: string
  readonly period: Period
  /** Of the summary; none: the recipients of the channel. */
  readonly to: readonly string[]
  /** Address by user. */
  readonly owners: Readonly<Record<string, string>>
}

/** Less is nobody's business. */
const LEAST_HOURS = 0.1
const MOST_ROWS = 30
/** What is below these is not worth a word. */
const IDLE_SHARE = 0.05
const LEAST_SAVED_HOURS = 0.5
const LOW_USE = 0.25
const GOOD_USE = 0.5

/** None where nothing was counted. `byUser` and `byGpu` are of the same time. */
export function usageLetters(byUser: UsageSummary, byGpu: UsageSummary, options: LetterOptions): readonly Letter[] {
  if (byUser.total.gpuHours + byUser.free.gpuHours === 0) return []
  const letters = [ownerLetter(byUser, byGpu, options)]
  for (const [rank, group] of byUser.groups.entries()) {
    const address = Object.hasOwn(options.owners, group.key) ? options.owners[group.key] : undefined
    if (address !== undefined && group.gpuHours >= LEAST_HOURS) letters.push(userLetter(group, rank + 1, address, byUser, options))
  }
  return letters
}

function ownerLetter(byUser: UsageSummary, byGpu: UsageSummary, { host, period, to }: LetterOptions): Letter {
  const { total, free, groups } = byUser
  const watched = total.gpuHours + free.gpuHours
  const people = groups.filter(({ gpuHours }) => gpuHours >= LEAST_HOURS)
  const parts: LetterPart[] = [
    { text: `GPU usage of ${host}, ${periodText(period)}${simulatedNote(byUser)}.` },
    {
      text: `Held: ${hours(total.gpuHours)} of ${hours(watched)} GPU-hours (${formatPercent(watched > 0 ? total.gpuHours / watched : null)}). Busy while held: ${formatPercent(total.busyRatio)}. Energy: ${kwh(sum(total.energyKwh, free.energyKwh))}.${costText(total, byUser)}`,
    },
    {
      table: [
        ['user', 'GPU-hours', 'share', 'busy', 'idle held', 'lost', 'kWh'],
        ...people
          .slice(0, MOST_ROWS)
          .map((group) => [
            group.label,
            hours(group.gpuHours),
            formatPercent(total.gpuHours > 0 ? group.gpuHours / total.gpuHours : null),
            formatPercent(group.busyRatio),
            hours(group.idleHours),
            hours(group.lostOomHours + group.lostDeadHours),
            plain(group.energyKwh),
          ]),
      ],
    },
    {
      table: [
        ['GPU', 'held', 'free', 'busy', 'throttled'],
        ...byGpu.groups
          .slice(0, MOST_ROWS)
          .map((group) => [
            group.label,
            hours(group.gpuHours),
            hours(group.freeHours ?? 0),
            formatPercent(group.busyRatio),
            hours(group.throttledHours),
          ]),
      ],
    },
  ]
  const notes = ownerNotes(byUser)
  if (notes.length > 0) parts.push({ text: 'Worth a look:' }, { list: notes })
  parts.push({
    text: 'Figures are in GPU-hours. "Idle held": memory was held and nothing computed. "Lost": runs that died or ran out of memory, since their last checkpoint.',
  })
  return { id: idOf(period, ''), subject: `GPU usage of ${host}, ${periodText(period)}`, to, parts }
}

function ownerNotes({ total, groups }: UsageSummary): string[] {
  const notes: string[] = []
  const [idlest] = [...groups].sort((a, b) => b.idleHours - a.idleHours)
  if (idlest && total.idleHours >= LEAST_SAVED_HOURS && total.idleHours >= total.gpuHours * IDLE_SHARE)
    notes.push(`${hours(total.idleHours)} GPU-hours were held without computing, ${hours(idlest.idleHours)} of them by ${idlest.label}.`)
  if (total.throttledHours >= LEAST_SAVED_HOURS)
    notes.push(`${hours(total.throttledHours)} GPU-hours of work were slowed down by heat or power: check the cooling.`)
  if (groups.some(({ key, gpuHours }) => key === UNKNOWN && gpuHours >= LEAST_HOURS))
    notes.push('Some processes have no known owner: gpuwarden may run in a container without the PID namespace of the host.')
  return notes
}

function userLetter(group: UsageGroup, rank: number, address: string, all: UsageSummary, { host, period }: LetterOptions): Letter {
  const share = all.total.gpuHours > 0 ? group.gpuHours / all.total.gpuHours : null
  const saved = savings(group, all)
  const parts: LetterPart[] = [
    { text: `Hello ${group.label},` },
    {
      text: `here is what you used on ${host}, ${periodText(period)}${simulatedNote(all)}: ${hours(group.gpuHours)} GPU-hours, ${formatPercent(share)} of all that was used (${rank} of ${all.groups.length} users).`,
    },
    {
      table: [
        ['', ''],
        ['GPU-hours held', hours(group.gpuHours)],
        ['Busy while held', formatPercent(group.busyRatio)],
        ...(group.smRatio === null ? [] : [['SM activity', formatPercent(group.smRatio)]]),
        ['Held without computing', `${hours(group.idleHours)} h`],
        ['Lost by runs that died', `${hours(group.lostOomHours + group.lostDeadHours)} h`],
        ['Energy', kwh(group.energyKwh)],
        ...(group.cost === null ? [] : [['Cost', `${all.costIsEstimate ? 'about ' : ''}$${group.cost.toFixed(2)}`]]),
      ].slice(1),
    },
  ]
  if (saved.length > 0) parts.push({ text: 'What you could save:' }, { list: saved })
  else if ((group.busyRatio ?? 0) >= GOOD_USE) parts.push({ text: 'Your GPUs were put to good use. Thank you!' })
  parts.push({ text: `Questions? The owner of ${host} can help.` })
  return { id: idOf(period, group.key), subject: `Your GPU usage on ${host}, ${periodText(period)}`, to: [address], parts }
}

/** What it was, how much, and what to do. */
function savings(group: UsageGroup, { costIsEstimate }: UsageSummary): string[] {
  const { gpuHours, idleHours, busyRatio, lostOomHours, lostDeadHours, cost } = group
  const price = (own: number) =>
    cost === null || gpuHours === 0 ? '' : ` (${costIsEstimate ? 'about ' : ''}$${((cost * own) / gpuHours).toFixed(2)})`
  const lines: string[] = []
  if (idleHours >= LEAST_SAVED_HOURS && idleHours >= gpuHours * IDLE_SHARE)
    lines.push(
      `${hours(idleHours)} GPU-hours${price(idleHours)} held memory and computed nothing: end notebooks and jobs that have finished.`,
    )
  if (lostOomHours >= LEAST_SAVED_HOURS)
    lines.push(
      `${hours(lostOomHours)} GPU-hours${price(lostOomHours)} were lost by running out of memory: gpuwarden warns before it happens, and checkpoints keep the rest.`,
    )
  if (lostDeadHours >= LEAST_SAVED_HOURS)
    lines.push(`${hours(lostDeadHours)} GPU-hours${price(lostDeadHours)} were lost by runs that died: save checkpoints more often.`)
  const working = gpuHours - idleHours
  const busyHours = (group.busyHours ?? 0) / Math.max(working, 1e-9)
  if (busyRatio !== null && working >= 1 && busyHours < LOW_USE)
    lines.push(
      `While your programs computed, the GPUs were ${formatPercent(busyHours)} busy: a larger batch, more data loader workers or fewer GPUs may help.`,
    )
  return lines
}

function simulatedNote({ simulated }: UsageSummary): string {
  return simulated ? ' (SIMULATED GPUs)' : ''
}

function costText({ cost }: Figures, { costIsEstimate }: UsageSummary): string {
  return cost === null ? '' : ` Cost of what was held: ${costIsEstimate ? 'about ' : ''}$${cost.toFixed(2)}.`
}

/** Stays the same for all tries, and for whoever asks again. */
function idOf({ name }: Period, user: string): string {
  return `usage-${name}${user === '' ? '' : `-${encodeURIComponent(user)}`}`
}

function hours(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1)
}

function plain(value: Reading): string {
  return value === null ? NOT_AVAILABLE : hours(value)
}

function kwh(value: Reading): string {
  return value === null ? 'not known' : `${hours(value)} kWh`
}

function sum(a: Reading, b: Reading): Reading {
  return a === null && b === null ? null : (a ?? 0) + (b ?? 0)
}
