/** The forecast of the end of memory as a fan: from what is in use now to full, at the earliest, as expected, at the latest. */
import type { Finding, Reading } from '../../../../src/core/model.ts'
import type { ChartFan } from '../../chart/time-chart.tsx'

export interface FanInput {
  readonly now: number
  readonly usedBytes: Reading
  readonly totalBytes: number
  /** How much of the past is shown beside it. */
  readonly pastMs: number
}

export interface Fan {
  readonly fan: ChartFan
  /** Where the picture ends. */
  readonly to: number
}

/** The past must stay visible beside a far future, unless the expected end itself is that far. */
const FUTURE_SHARE = 3
const ROOM_AFTER = 0.12

export function fanOf(finding: Finding, { now, usedBytes, totalBytes, pastMs }: FanInput): Fan | null {
  const { predictedAt, predictedEarliestAt, predictedLatestAt } = finding
  if (predictedAt === null) return null
  const expected = Math.max(now, predictedAt)
  const earliest = Math.max(now, Math.min(predictedEarliestAt ?? expected, expected))
  const latest = Math.max(expected, predictedLatestAt ?? expected)
  const start = Math.min(totalBytes, startBytes(finding, usedBytes, totalBytes))
  const farthest = Math.max(now + FUTURE_SHARE * pastMs, expected + ROOM_AFTER * (expected - now))
  const end = Math.min(latest + ROOM_AFTER * (latest - now), farthest)
  const to = Math.max(end, now + 0.05 * pastMs)
  const at = [...new Set([now, earliest, expected, latest, to].filter((moment) => moment <= to))].sort((a, b) => a - b)
  const towards = (full: number) =>
    at.map((moment) => (moment >= full ? totalBytes : start + ((totalBytes - start) * (moment - now)) / (full - now)))
  return { fan: { at, low: towards(latest), middle: towards(expected), high: towards(earliest), label: 'forecast' }, to }
}

/** Of a run's allocator: what it needs, on top of what is not its own. Of the device: what is in use. */
function startBytes({ evidence }: Finding, usedBytes: Reading, totalBytes: number): number {
  const { source, levelRatio, capacityBytes } = evidence
  const isLevelKnown = typeof levelRatio === 'number' && typeof capacityBytes === 'number'
  if (isLevelKnown && (source === 'allocator' || usedBytes === null)) return Math.max(0, totalBytes - (1 - levelRatio) * capacityBytes)
  return usedBytes ?? 0
}

/** Findings about one GPU's memory, the nearest end first. A run names only the number of its GPU. */
export function forecastsOf(findings: readonly Finding[], gpu: { readonly id: string; readonly index: number }): readonly Finding[] {
  return findings
    .filter((one) => one.detector === 'oom' && isAbout(one, gpu))
    .sort((a, b) => (a.predictedAt ?? Number.POSITIVE_INFINITY) - (b.predictedAt ?? Number.POSITIVE_INFINITY))
}

export function isAbout({ subject }: Finding, gpu: { readonly id: string; readonly index: number }): boolean {
  return subject.gpu === null ? subject.gpuIndex === gpu.index : subject.gpu === gpu.id
}
