/** Answers any span: from memory, from the logs where a short time is asked for, else from the tier that fits. */
import { join } from 'node:path'
import type { HistoryAnswer, HistoryQuery, LongHistory } from '../../core/kinds.ts'
import { toColumn } from '../../core/record.ts'
import type { GpuHistory } from '../gpu-history.ts'
import { answerSamples, emptyAnswer } from '../history-query.ts'
import { MINUTE_MS, type Summary } from '../minute-ring.ts'
import { FIELD_INDEX } from '../sample-ring.ts'
import { Steps } from '../steps.ts'
import { type RawSample, readRawWindow } from './raw-window.ts'
import { inBaseUnit, isHost, type Series, seriesOf } from './series.ts'
import { Spacing } from './spacing.ts'
import { type Period, TierReader } from './tier-reader.ts'
import { FINEST, FOLDER, TIERS, type Tier } from './tier-table.ts'

/** A short time is answered with every sample, if the logs still have it. */
const RAW_SPAN_MS = 30 * MINUTE_MS
/** More than a chart is wide: a tier that gives about so many is fine enough. */
const POINTS_OF_A_CHART = 1500
const CLOSE_ENOUGH = 1.5

export interface LongHistoryOptions {
  readonly logDir: string
  /** Where the records are; in `logDir` by default. */
  readonly root?: string
  /** What is in memory; null: no agent runs here. */
  readonly memory: { of(gpu: string): GpuHistory | undefined } | null
  /** Whether memory has been filled from the logs, so that nothing is missing between its first minute and now. */
  readonly isFilled: () => boolean
  readonly onDamage: (path: string, error: Error) => void
}

export function createLongHistory(options: LongHistoryOptions): LongHistory {
  return new DiskHistory(options)
}

class DiskHistory implements LongHistory {
  readonly #options: LongHistoryOptions
  readonly #reader: TierReader
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: LongHistoryOptions) {
    this.#options = options
    this.#reader = new TierReader(options.root ?? join(options.logDir, FOLDER), options.onDamage)
  }

  async devices(): Promise<readonly string[]> {
    return (await this.#reader.devices()).filter((device) => !isHost(device))
  }

  /** One at a time: a page asks for eight GPUs at once, and files take memory. */
  query(query: HistoryQuery): Promise<HistoryAnswer> {
    const answer = this.#last.then(() => this.#answer(query))
    this.#last = answer.catch(() => undefined)
    return answer
  }

  async #answer(query: HistoryQuery): Promise<HistoryAnswer> {
    const { from, to } = query
    if (!(from <= to)) return emptyAnswer(query)
    if (to - from <= RAW_SPAN_MS && (query.stepMs ?? 0) < FINEST.stepMs) {
      const samples = await this.#samples(query)
      if (samples.length > 0) return answerRaw(samples, query)
    }
    return this.#fromTiers(query, 0)
  }

  /** From the logs, continued from memory: lines reach the disk a few seconds late. */
  async #samples(query: HistoryQuery): Promise<RawSample[]> {
    const samples = await readRawWindow(this.#options.logDir, query, this.#options.onDamage)
    const ring = this.#options.memory?.of(query.gpu)?.samples
    const lastAt = samples.at(-1)?.at ?? query.from - 1
    for (let index = ring?.indexFrom(lastAt + 1) ?? 0; ring && index < ring.length && ring.timeAt(index) <= query.to; index++) {
      const at = ring.timeAt(index)
      const readings = Object.fromEntries(
        query.fields.map((field) => {
          const own = FIELD_INDEX.get(field as never)
          return [field, own === undefined ? null : ring.valueAt(own, index)]
        }),
      )
      samples.push({ at, readings })
    }
    return samples
  }

  /** `leastStepMs`: samples were further apart than the records of the tier. */
  async #fromTiers(query: HistoryQuery, leastStepMs: number): Promise<HistoryAnswer> {
    const { gpu, from, to } = query
    const memory = this.#options.memory?.of(gpu)
    const journals = await this.#reader.journals()
    const { tier, periods } = await this.#choose(query, journals)
    // Minutes in memory spare reading the journal of the day.
    const inMemoryFrom = tier === FINEST ? Number.POSITIVE_INFINITY : this.#memoryFrom(memory, tier)
    const lastKnown = Math.max(memory?.lastAt ?? Number.NEGATIVE_INFINITY, ...[...periods, ...journals].map(({ end }) => end - 1))
    const firstKnown = Math.min(
      memory?.samples.firstAt ?? Number.POSITIVE_INFINITY,
      inMemoryFrom,
      ...[...periods, ...journals].map((one) => one.from),
    )
    const [first, last] = [Math.max(from, firstKnown), Math.min(to, lastKnown)]
    if (!(first <= last)) return emptyAnswer(query)
    const table = seriesOf(gpu)
    const positions = new Map(
      query.fields.flatMap((field, position) => {
        const series = table.byField.get(field)
        return series === undefined ? [] : [[series, position] as const]
      }),
    )
    const steps = new Steps(query, first, last, Math.max(query.stepMs ?? 0, leastStepMs, tier.stepMs), tier.stepMs)
    const spacing = new Spacing()
    const places = table.all.map((_, series) => positions.get(series) ?? -1)
    const take = (at: number, series: number, summary: Summary) => {
      const position = places[series] ?? -1
      steps.add(at, position, summary)
      if (position === 0) spacing.note(at)
    }
    const range = { device: gpu, series: [...positions.keys()], from: from - tier.stepMs + 1, end: Math.min(to + 1, inMemoryFrom) }
    // The journal first: what is closed meanwhile is then found twice, which changes no figure but a count, instead of never.
    await this.#reader.readJournal(journals, range, take)
    await this.#reader.read(tier, range, take)
    if (memory && inMemoryFrom <= to)
      addMinutes(memory, Math.max(inMemoryFrom, from - MINUTE_MS + 1), to, (at, index, summary) => take(at, index, summary))
    if (memory && tier === FINEST) addNewest(memory, spacing.lastAt + tier.stepMs, query, take)
    const usualMs = spacing.usualMs()
    if (usualMs > Math.max(tier.stepMs, leastStepMs) && leastStepMs === 0)
      return this.#fromTiers(query, Math.ceil(usualMs / tier.stepMs) * tier.stepMs)
    const filled = steps.filled()
    const series = query.fields.map((field) => table.all[table.byField.get(field) ?? -1])
    return filled ? steps.answer((position, value) => inBase(series[position], value), filled) : emptyAnswer(query)
  }

  /** The coarsest that is fine enough; a coarser one where only that goes back as far. */
  async #choose(query: HistoryQuery, journals: readonly Period[]): Promise<{ readonly tier: Tier; readonly periods: readonly Period[] }> {
    const { gpu, from, to, points = POINTS_OF_A_CHART } = query
    const wantedMs = Math.max(query.stepMs ?? 0, (to - from) / Math.max(2, Math.min(points, POINTS_OF_A_CHART)))
    let at = TIERS.findLastIndex(({ stepMs }) => stepMs <= (query.stepMs === null ? wantedMs * CLOSE_ENOUGH : wantedMs))
    at = Math.max(0, at)
    let periods = await this.#reader.periods(TIERS[at] ?? FINEST, gpu)
    for (let coarser = at + 1; coarser < TIERS.length; coarser++) {
      const tier = TIERS[coarser] ?? FINEST
      const start = Math.min(...[...periods, ...journals].map((one) => one.from))
      if (start <= from) break
      const others = await this.#reader.periods(tier, gpu)
      const [oldest] = others
      if (oldest === undefined || oldest.end > start) continue
      at = coarser
      periods = others
    }
    return { tier: TIERS[at] ?? FINEST, periods }
  }

  /** From then on every record of a tier can be made from the minutes in memory. */
  #memoryFrom(memory: GpuHistory | undefined, { stepMs }: Tier): number {
    const first = this.#options.isFilled() ? memory?.extent()?.first : undefined
    return first === undefined ? Number.POSITIVE_INFINITY : Math.ceil(((first + 1) * MINUTE_MS) / stepMs) * stepMs
  }
}

function answerRaw(samples: readonly RawSample[], query: HistoryQuery): HistoryAnswer {
  const columns = {
    length: samples.length,
    timeAt: (index: number) => samples[index]?.at ?? Number.NaN,
    column: (field: string) => (index: number) =>
      (samples[index]?.readings as Record<string, number | null> | undefined)?.[field] ?? Number.NaN,
  }
  return answerSamples(columns, query, 0, samples.length)
}

function addMinutes(memory: GpuHistory, from: number, to: number, take: (at: number, series: number, summary: Summary) => void): void {
  const table = seriesOf('')
  const minutes = memory.minutesBetween(Math.ceil(from / MINUTE_MS), Math.floor(to / MINUTE_MS)).sort((a, b) => a - b)
  table.all.forEach(({ field, scale }, series) => {
    const own = FIELD_INDEX.get(field as never)
    if (own === undefined) return
    for (const minute of minutes) {
      const found = memory.minute(own, minute)
      if (!found) continue
      const { count, sum, min, max } = found
      take(minute * MINUTE_MS, series, {
        count,
        sum: toColumn(sum / count, scale) * count,
        min: toColumn(min, scale),
        max: toColumn(max, scale),
      })
    }
  })
}

/** The samples that no record holds yet. */
function addNewest(
  memory: GpuHistory,
  from: number,
  { fields, to }: HistoryQuery,
  take: (at: number, series: number, summary: Summary) => void,
): void {
  const ring = memory.samples
  const table = seriesOf('')
  for (const field of fields) {
    const own = FIELD_INDEX.get(field as never)
    const series = table.byField.get(field)
    if (own === undefined || series === undefined) continue
    const scale = table.all[series]?.scale ?? 'same'
    for (let index = ring.indexFrom(from); index < ring.length && ring.timeAt(index) <= to; index++) {
      const value = toColumn(ring.valueAt(own, index), scale)
      if (!Number.isNaN(value)) take(ring.timeAt(index), series, { count: 1, sum: value, min: value, max: value })
    }
  }
}

function inBase(series: Series | undefined, value: number): number {
  return series === undefined ? value : inBaseUnit(series, value)
}
