/** Readings of a GPU over a time range: asked for once, then continued from the stream. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { GpuField, Reading } from '../../src/core/model.ts'
import type { HistoryAnswer } from './answers.ts'
import { ask, inWords } from './api.ts'
import { agentNow } from './live/agent-clock.ts'
import type { GpuCell } from './live/gpu-cell.ts'
import { epoch, isReplay, onEvent } from './live/store.ts'
import { boundsOf, type TimeRange } from './time-range.ts'

export type Columns = Readonly<Partial<Record<GpuField, readonly Reading[]>>>

/** What a page draws. Averaged where the span is long: then `min` and `max` hold the extremes inside each step. */
export interface Track {
  readonly state: 'loading' | 'ready' | 'failed'
  readonly fault: string | null
  readonly from: number
  readonly to: number
  readonly at: readonly number[]
  readonly columns: Columns
  readonly min: Columns | null
  readonly max: Columns | null
  /** 0: every sample as it was taken. */
  readonly stepMs: number
}

const PUBLISH_MS = 900
const SHORTEST_REFRESH_MS = 10_000
const LONGEST_REFRESH_MS = 600_000
/** More than a chart is wide; a short span comes as it was taken. */
const MOST_POINTS = 1500
const LONG_SPAN_MS = 3_600_000

/** The present of this GPU's data: of a recording it is the moment that was played last. */
export function presentOf(cell: GpuCell): number {
  const sample = cell.sample.peek()
  return isReplay.peek() && sample ? sample.at : agentNow()
}

export function useHistory(cell: GpuCell, fields: readonly GpuField[], range: TimeRange): ReadonlySignal<Track> {
  const track = useMemo(() => signal<Track>(emptyTrack(cell, range)), [])
  const rangeKey = range.kind === 'last' ? range.name : `${range.from}-${range.to}`
  useEffect(
    () =>
      follow(
        cell,
        fields,
        range,
        (next) => (track.value = next),
        () => track.peek(),
      ),
    [cell, fields.join(), rangeKey, epoch.value],
  )
  return track
}

function emptyTrack(cell: GpuCell, range: TimeRange): Track {
  return { state: 'loading', fault: null, ...boundsOf(range, presentOf(cell)), at: [], columns: {}, min: null, max: null, stepMs: 0 }
}

/** Returns what ends it. */
function follow(
  cell: GpuCell,
  fields: readonly GpuField[],
  range: TimeRange,
  publish: (track: Track) => void,
  current: () => Track,
): () => void {
  const stop = new AbortController()
  let at: number[] = []
  let columns: Reading[][] = fields.map(() => [])
  let answer: HistoryAnswer | null = null
  let publishedAt = 0
  let refresh: ReturnType<typeof setTimeout> | null = null
  // Samples that arrive while the answer is on its way.
  const early: { at: number; values: Reading[] }[] = []

  function show(): void {
    if (!answer) return
    publishedAt = performance.now()
    const bounds = boundsOf(range, presentOf(cell))
    publish({
      state: 'ready',
      fault: null,
      ...bounds,
      at: at.slice(),
      columns: named(fields, columns),
      min: answer.min && named(fields, answer.min),
      max: answer.max && named(fields, answer.max),
      stepMs: answer.stepMs,
    })
  }

  function add(time: number, values: readonly Reading[]): void {
    const last = at.at(-1)
    if (last !== undefined && time <= last) return
    at.push(time)
    columns.forEach((column, index) => {
      column.push(values[index] ?? null)
    })
    if (range.kind !== 'last') return
    const oldest = time - range.ms
    if ((at[0] ?? oldest) >= oldest - range.ms * 0.1) return
    const first = at.findIndex((one) => one >= oldest)
    at = at.slice(first)
    columns = columns.map((column) => column.slice(first))
  }

  async function load(): Promise<void> {
    const { from, to } = boundsOf(range, presentOf(cell))
    try {
      const got = await ask<HistoryAnswer>(
        '/api/v1/history',
        {
          gpu: cell.id,
          field: fields.join(),
          from: Math.floor(from),
          to: Math.ceil(to),
          ...(to - from > LONG_SPAN_MS ? { points: MOST_POINTS } : {}),
        },
        { signal: stop.signal },
      )
      const [times = [], ...rest] = got.data
      at = times.map((time) => time ?? 0)
      columns = fields.map((_, index) => (rest[index] ?? []).slice())
      answer = got
      if (got.stepMs === 0) for (const sample of early.splice(0)) add(sample.at, sample.values)
      show()
      if (range.kind === 'last' && got.stepMs > 0) {
        refresh = setTimeout(() => void load(), Math.min(LONGEST_REFRESH_MS, Math.max(SHORTEST_REFRESH_MS, got.stepMs)))
      }
    } catch (error) {
      if (!stop.signal.aborted) publish({ ...current(), state: 'failed', fault: inWords(error) })
    }
  }

  const unsubscribe =
    range.kind === 'last'
      ? onEvent((event) => {
          if (event.type !== 'tick') return
          const sample = event.tick.gpus.find(({ gpu }) => gpu === cell.id)
          if (sample) {
            const values = fields.map((field) => sample[field])
            if (answer === null) early.push({ at: sample.at, values })
            else if (answer.stepMs === 0) add(sample.at, values)
          }
          // Also when this GPU is silent: the gap has to grow.
          if (performance.now() - publishedAt > PUBLISH_MS) show()
        })
      : () => undefined
  void load()
  return () => {
    stop.abort()
    unsubscribe()
    if (refresh !== null) clearTimeout(refresh)
  }
}

function named(fields: readonly GpuField[], columns: readonly (readonly Reading[])[]): Columns {
  return Object.fromEntries(fields.map((field, index) => [field, columns[index] ?? []]))
}
