/** Usage of a span: added up by user, job, run, GPU or day, and over the days. */
import { dayOf } from './day-files.ts'
import { type Figures, Tally } from './figures.ts'
import type { PriceOf } from './prices.ts'
import { DAY_MS, NOBODY, type UsageRow } from './row.ts'

export const GROUPINGS = ['user', 'job', 'run', 'gpu', 'day'] as const
export type Grouping = (typeof GROUPINGS)[number]

export interface UsageGroup extends Figures {
  /** User, job, run id, GPU id or day; empty: use without a job, or without a run. */
  readonly key: string
  readonly label: string
  /** Whose it is, the most first; at most three. */
  readonly users: readonly string[]
  /** Time in which nobody held the GPUs; null where it belongs to no group. */
  readonly freeHours: number | null
}

export interface UsageSummary {
  readonly from: number
  readonly to: number
  readonly by: Grouping
  /** All of it is of simulated GPUs; real ones are never mixed in. */
  readonly simulated: boolean
  /** There is also use of the other kind. */
  readonly hasOther: boolean
  /** Costs are rough: from list prices. */
  readonly costIsEstimate: boolean
  /** All that was held. */
  readonly total: Figures
  /** Time in which nobody held the GPUs. */
  readonly free: Figures
  /** Most GPU-hours first; days in their order. */
  readonly groups: readonly UsageGroup[]
  /** How many more groups there are, counted in `total` alone. */
  readonly moreGroups: number
  /** GPU-hours per day (UTC), of the largest groups and of the rest. Grouped by day, it is by user. */
  readonly days: {
    readonly at: readonly string[]
    readonly series: readonly { readonly key: string; readonly label: string; readonly gpuHours: readonly number[] }[]
    readonly freeHours: readonly number[]
  }
}

export interface SummaryQuery {
  readonly from: number
  readonly to: number
  readonly by: Grouping
  readonly user: string | null
  /** null: real use, or simulated use where there is no other. */
  readonly simulated: boolean | null
  readonly priceOf: PriceOf
}

const MOST_GROUPS = 1000
const MOST_SERIES = 8
const LONGEST_CHART_DAYS = 400

interface Group {
  label: string
  readonly held: Tally
  readonly free: Tally
  readonly users: Map<string, number>
}

export async function summarize(days: AsyncIterable<Iterable<UsageRow>>, query: SummaryQuery): Promise<UsageSummary> {
  const sides = { real: new Side(query), simulated: new Side(query) }
  for await (const rows of days)
    for (const row of rows) if (query.user === null || row.user === query.user) sides[row.simulated ? 'simulated' : 'real'].add(row)
  const simulated = query.simulated ?? (sides.real.isEmpty && !sides.simulated.isEmpty)
  const [side, other] = simulated ? [sides.simulated, sides.real] : [sides.real, sides.simulated]
  return { ...side.summary(), simulated, hasOther: !other.isEmpty }
}

class Side {
  readonly #query: SummaryQuery
  readonly #held = new Tally()
  readonly #free = new Tally()
  readonly #groups = new Map<string, Group>()
  /** GPU seconds by day, then by what the chart shows. */
  readonly #days = new Map<string, Map<string, number>>()
  readonly #labels = new Map<string, string>()
  isEmpty = true

  constructor(query: SummaryQuery) {
    this.#query = query
  }

  add(row: UsageRow): void {
    this.isEmpty = false
    const { by, priceOf } = this.#query
    const day = dayOf(row.hour)
    const seconds = this.#days.get(day) ?? new Map<string, number>()
    this.#days.set(day, seconds)
    if (row.user === NOBODY) {
      this.#free.add(row, null)
      // Free time belongs to a GPU and a day, not to a user, job or run.
      if (by === 'gpu' || by === 'day') this.#group(row, by).free.add(row, null)
      seconds.set('', (seconds.get('') ?? 0) + row.gpuSeconds)
      return
    }
    this.#held.add(row, priceOf)
    const group = this.#group(row, by)
    group.held.add(row, priceOf)
    group.users.set(row.user, (group.users.get(row.user) ?? 0) + row.gpuSeconds)
    const [key, label] = keyOf(row, by === 'day' ? 'user' : by)
    this.#labels.set(`=${key}`, by === 'gpu' ? `GPU ${row.label}` : label)
    seconds.set(`=${key}`, (seconds.get(`=${key}`) ?? 0) + row.gpuSeconds)
  }

  summary(): Omit<UsageSummary, 'simulated' | 'hasOther'> {
    const { from, to, by } = this.#query
    const groups = Array.from(this.#groups, ([key, group]) => groupOf(key, group, by === 'gpu' || by === 'day'))
    if (by === 'day') groups.sort((a, b) => (a.key < b.key ? -1 : 1))
    else if (by === 'gpu') groups.sort((a, b) => a.label.localeCompare(b.label, 'en', { numeric: true }))
    else groups.sort((a, b) => b.gpuHours - a.gpuHours)
    const [total, free] = [this.#held.figures(), this.#free.figures()]
    const shown = groups.slice(0, MOST_GROUPS)
    const moreGroups = groups.length - shown.length
    return { from, to, by, costIsEstimate: this.#held.isEstimate, total, free, groups: shown, moreGroups, days: this.#chart() }
  }

  #group(row: UsageRow, by: Grouping): Group {
    const [key, label] = keyOf(row, by)
    const known = this.#groups.get(key)
    if (known) {
      known.label = label
      return known
    }
    const group = { label, held: new Tally(), free: new Tally(), users: new Map<string, number>() }
    this.#groups.set(key, group)
    return group
  }

  #chart(): UsageSummary['days'] {
    const at = daysBetween([...this.#days.keys()].sort())
    const sums = new Map<string, number>()
    for (const seconds of this.#days.values()) for (const [key, own] of seconds) if (key !== '') sums.set(key, (sums.get(key) ?? 0) + own)
    const keys = [...sums].sort(([, a], [, b]) => b - a).map(([key]) => key)
    const shown = keys.slice(0, keys.length > MOST_SERIES ? MOST_SERIES - 1 : MOST_SERIES)
    const others = keys.slice(shown.length)
    const hours = (day: string, of: readonly string[]) => of.reduce((sum, key) => sum + (this.#days.get(day)?.get(key) ?? 0), 0) / 3600
    const series = shown.map((key) => ({
      key: key.slice(1),
      label: this.#labels.get(key) ?? key.slice(1),
      gpuHours: at.map((day) => hours(day, [key])),
    }))
    if (others.length > 0) series.push({ key: '', label: `${others.length} others`, gpuHours: at.map((day) => hours(day, others)) })
    return { at, series, freeHours: at.map((day) => hours(day, [''])) }
  }
}

/** A day without any rows between others is shown as it is: nobody watched. */
function daysBetween(days: readonly string[]): string[] {
  const [first = '', last = ''] = [days[0], days.at(-1)]
  const count = days.length === 0 ? 0 : Math.min(LONGEST_CHART_DAYS, Math.round((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1)
  return Array.from({ length: count }, (_, index) => dayOf(Date.parse(last) - (count - 1 - index) * DAY_MS))
}

function keyOf(row: UsageRow, by: Grouping): [key: string, label: string] {
  if (by === 'user') return [row.user, row.user]
  if (by === 'job') return row.job === null ? ['', 'no job'] : [row.job, row.job]
  if (by === 'run') return row.run === null ? ['', 'no run'] : [row.run, row.runName ?? row.run]
  if (by === 'gpu') return [row.gpu, row.card === null ? row.label : `${row.label} ${row.card}`]
  const day = dayOf(row.hour)
  return [day, day]
}

function groupOf(key: string, { label, held, free, users }: Group, hasFree: boolean): UsageGroup {
  const most = [...users].sort(([, a], [, b]) => b - a).slice(0, 3)
  return { key, label, users: most.map(([user]) => user), ...held.figures(), freeHours: hasFree ? free.gpuSeconds / 3600 : null }
}
