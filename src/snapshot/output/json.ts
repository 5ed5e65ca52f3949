/** The verdicts as JSON: plain data with stable names. */
import type { Snapshot } from '../read/read-snapshot.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import type { Diff } from '../verdict/diff.ts'
import { byCategory, byLine, byModule, sharesBy } from '../verdict/live-set.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** Where the lists of a moment end; sums are of all. */
const MOST_ROWS = 200

export function fileJson(path: string, { bytes, cut, tables, layout }: Snapshot): Json {
  return {
    path,
    bytes,
    cut,
    settings: Object.fromEntries(layout.settings),
    unknown_actions: Object.fromEntries([...tables.unknownActions].map(([text, count]) => [tables.texts.text(text), count])),
    texts_not_kept: tables.texts.notKept,
  }
}

export function deviceJson(analysis: DeviceAnalysis, moment: { readonly index: number; readonly name: string }, minBytes: number): Json {
  const { device, curve, identity, actions, steps, leak, retries, fragmentation } = analysis
  const { trace } = device
  const level = (one: { readonly index: number }) => ({ ...(snake(one) as object), time_us: trace.time(one.index) })
  return {
    device: device.index,
    events: trace.count,
    actions: snake(actions),
    window: { begin_us: trace.time(0), end_us: trace.time(trace.count - 1) },
    is_filtered: analysis.isFiltered,
    steps: { source: steps.source, name: steps.name, count: steps.ends.length, median_seconds: steps.medianSeconds },
    peak: level(curve.peak),
    reserved_peak: level(curve.reservedPeak),
    start: level(curve.start),
    end: level(curve.end),
    identity: snake(identity),
    at: momentJson(analysis, moment, minBytes),
    retries: snake(retries),
    leak: { answer: leak.answer, marks: leak.marks, candidates: snake(leak.candidates) },
    fragmentation: snake(fragmentation),
    out_of_memory: analysis.outOfMemoryEvents.slice(-MOST_OOMS).map((event) => snake(analysis.outOfMemory(event))),
    timeline: curve.points.map(({ index, allocatedBytes, reservedBytes }) => [index, trace.time(index), allocatedBytes, reservedBytes]),
  } as Json
}

const MOST_OOMS = 5

function momentJson(analysis: DeviceAnalysis, { index, name }: { readonly index: number; readonly name: string }, minBytes: number): Json {
  const { words, device } = analysis
  const holdings = analysis.liveAt(index)
  const rows = (shares: readonly { readonly bytes: number }[]) => snake(shares.filter(({ bytes }) => bytes >= minBytes).slice(0, MOST_ROWS))
  return {
    name,
    ...(snake(analysis.levelAt(index)) as Record<string, Json>),
    time_us: device.trace.time(index),
    by_category: snake(byCategory(holdings)),
    by_line: rows(byLine(holdings, words)),
    by_python_line: rows(
      sharesBy(holdings, ({ stack, origin }) => {
        const { python, label } = words.of(stack)
        return python === null || origin === 'freed' ? label : `${python.file}:${python.line} ${python.function}`
      }),
    ),
    by_module: rows(byModule(holdings, words)),
    stacks: holdings
      .filter(({ bytes }) => bytes >= minBytes)
      .slice(0, MOST_ROWS)
      .map(({ stack, category, bytes, blocks, origin }) => ({ category, bytes, blocks, origin, stack: words.of(stack).folded })),
  }
}

export function diffJson(diff: Diff): Json {
  return snake(diff)
}

/** `bytesPerStep` → `bytes_per_step`, all the way down. */
export function snake(value: unknown): Json {
  if (Array.isArray(value)) return value.map(snake)
  if (typeof value !== 'object' || value === null) return value as Json
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), snake(one)]),
  )
}
