/** A snapshot on one screen. */
import { formatBytes } from '../../core/format.ts'
import type { Level } from '../verdict/curve.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { byCategory, byLine, byModule } from '../verdict/live-set.ts'
import { fragmentationLines } from './fragmentation-text.ts'
import { leakLines } from './leak-text.ts'
import { oomLines } from './oom-text.ts'
import { count, counted, LEAST_RATIO, labeled, momentText, percent, secondsText, shareRows } from './words.ts'

const MOST_LINES = 7
const MOST_MODULES = 4

export interface SummaryInput {
  readonly analysis: DeviceAnalysis
  /** Index and what it is called: `peak`. */
  readonly moment: { readonly index: number; readonly name: string }
  readonly minBytes: number
  readonly limitBytes: number | null
}

export function summaryText({ analysis, moment, minBytes, limitBytes }: SummaryInput): string {
  const { device, curve, identity, words } = analysis
  const { trace } = device
  const hasEvents = trace.count > 0
  const holdings = analysis.liveAt(moment.index)
  const level = analysis.levelAt(moment.index)
  const blocks = holdings.reduce((sum, holding) => sum + holding.blocks, 0)
  const [lastOom] = analysis.outOfMemoryEvents.slice(-1)
  const lines = [
    headLine(analysis),
    '',
    ...(hasEvents ? peakLines(analysis) : []),
    ...labeled('At the end', [`${formatBytes(curve.end.allocatedBytes)} allocated, ${formatBytes(curve.end.reservedBytes)} reserved`]),
    ...labeled('Check', identityLines(analysis)),
    ...(hasEvents ? labeled('Retries', [retriesText(analysis)]) : []),
    '',
    usageLine(analysis, moment, level, blocks),
    ...shareRows(byLine(holdings, words), MOST_LINES, minBytes),
    `  ${byCategory(holdings)
      .filter(({ bytes, name }) => bytes > 0 || name === 'unknown')
      .map(({ name, ratio }) => `${name.replace('_', ' ')} ${percent(ratio)}`)
      .join(', ')}`,
  ]
  const modules = byModule(holdings, words)
  if (modules.some(({ ratio }) => ratio >= LEAST_RATIO)) lines.push('By module', ...shareRows(modules, MOST_MODULES, minBytes))
  lines.push(
    '',
    ...labeled('Leak', leakLines(analysis, limitBytes, false)),
    ...labeled('Fragmentation', fragmentationLines(analysis.fragmentation)),
  )
  if (lastOom !== undefined) lines.push(...labeled('Out of memory', oomLines(analysis.outOfMemory(lastOom))))
  if (identity.differenceBytes !== 0) lines.push('', 'Levels before the lost events may be off by what was lost.')
  return lines.join('\n')
}

function headLine({ device, steps, isFiltered }: DeviceAnalysis): string {
  const { trace } = device
  const [begun, ended] = [trace.time(0), trace.time(trace.count - 1)]
  const span = begun === null || ended === null ? '' : ` in ${secondsText((ended - begun) / 1e6)}`
  const marked = steps.source === 'equal parts' ? '' : `, ${counted(steps.ends.length, 'step')}`
  const events = trace.count === 0 ? 'no events: only the state at the end is known' : `${counted(trace.count, 'event')}${span}${marked}`
  return `GPU ${device.index}: ${events}${isFiltered ? ' (filtered)' : ''}`
}

function peakLines({ curve, device: { trace } }: DeviceAnalysis): string[] {
  const { peak } = curve
  return labeled('Peak', [
    `${formatBytes(peak.allocatedBytes)} allocated, ${formatBytes(peak.reservedBytes)} reserved${mostReserved(curve)}`,
    `  at ${momentText(peak.index, trace.time(peak.index), trace.time(0))}`,
  ])
}

/** `In use at the peak: 4.2 GiB in 425 blocks` */
function usageLine({ device: { trace } }: DeviceAnalysis, { index, name }: SummaryInput['moment'], level: Level, blocks: number): string {
  const when = name === 'the peak' || trace.count === 0 ? '' : ` (${momentText(index, trace.time(index), trace.time(0), false)})`
  const pending = level.pendingBytes > 0 ? `, ${formatBytes(level.pendingBytes)} of it freed and still awaited by a stream` : ''
  return `In use at ${trace.count === 0 ? 'the end' : name}${when}: ${formatBytes(level.allocatedBytes)} in ${counted(blocks, 'block')}${pending}`
}

function mostReserved({ peak, reservedPeak }: DeviceAnalysis['curve']): string {
  const most = formatBytes(reservedPeak.reservedBytes)
  return most === formatBytes(peak.reservedBytes) ? '' : ` (at most ${most})`
}

export function identityLines({ identity, device }: DeviceAnalysis): string[] {
  const { differenceBytes, freedInWindowBytes, neverFreedBytes, lostFrees, hasFrees } = identity
  if (device.trace.count === 0) return ['no events to check the blocks against']
  const before = freedInWindowBytes + neverFreedBytes
  const early = before > 0 ? `; ${formatBytes(before)} was made before the first event` : ''
  const lines =
    differenceBytes === 0
      ? [`events and blocks agree${early}`]
      : [
          `events and blocks differ by ${formatBytes(Math.abs(differenceBytes))}: events are missing${early}`,
          `  ${formatBytes(identity.byEventsBytes)} by events, ${formatBytes(identity.byBlocksBytes)} by blocks`,
        ]
  if (lostFrees > 0) lines.push(`${count(lostFrees)} frees were lost`)
  if (!hasFrees) lines.push('frees were not recorded: only growth is known')
  return lines
}

export function retriesText({ retries }: DeviceAnalysis): string {
  if (retries.count === 0) return 'none: the driver always had the memory that was asked for'
  const often = retries.isThrashing ? `, in ${counted(retries.steps, 'step')}: thrashing` : ''
  return `${count(retries.count)}, giving back ${formatBytes(retries.bytes)} of cache${often}`
}
