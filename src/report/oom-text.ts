/** Why memory ran out, as rows of a summary in the terminal. */
import { formatBytes, formatCount } from '../core/format.ts'
import {
  causeWords,
  growthText,
  ledgerBySize,
  ledgerLabel,
  ledgerTotal,
  type OomHolder,
  type OomReport,
  ownPlace,
  placeText,
  wayOutText,
} from '../core/memory/oom-report.ts'

const MOST_HOLDERS = 3
/** Share of the device; smaller parts do not explain anything. */
const LEAST_SHARE = 0.01

/** `runName`: where the summary covers more than that run. */
export function oomRows(report: OomReport, runName: string | null): [string, string][] {
  const rows: [string, string][] = []
  const { cause, requestedBytes, growth, holders, snapshot, rank } = report
  if (cause) rows.push(['cause', `${causeWords(cause.kind)}${cause.message === null ? '' : `: ${cause.message}`}`])
  const line = ownPlace(report)
  const asked = requestedBytes === null ? '' : `asked for ${formatBytes(requestedBytes)}`
  const where = line === null ? '' : placeText(line)
  const who = rank === null || rank === 0 ? '' : `rank ${rank}`
  const place = [where, asked, runName === null ? '' : `run ${runName}`, who].filter((part) => part !== '').join(', ')
  if (place !== '') rows.push(['where', place])
  const ledger = ledgerText(report)
  if (ledger !== '') rows.push(['memory', ledger])
  rows.push(...holderRows(holders.slice(0, MOST_HOLDERS)))
  // The message of a leak already says how it grew.
  if (growth && (cause?.kind !== 'leak' || cause.message === null)) rows.push(['growth', growthText(growth)])
  for (const [index, way] of (snapshot?.waysOut ?? []).entries())
    rows.push([index === 0 ? 'ways out' : '', `${wayOutText(way)}${way.line === null ? '' : ` ${way.line}`}`])
  if (snapshot?.path != null) rows.push(['snapshot', `${snapshot.path} (gpuwarden snapshot shows it)`])
  return rows
}

function holderRows(holders: readonly OomHolder[]): [string, string][] {
  const sizes = holders.map(({ bytes }) => formatBytes(bytes))
  const width = Math.max(0, ...sizes.map(({ length }) => length))
  return holders.map((holder, index) => {
    const blocks = holder.blocks === null ? '' : ` (${formatCount(holder.blocks, 'block')})`
    return [index === 0 ? 'held by' : '', `${sizes[index]?.padStart(width)}  ${placeText(holder)}${blocks}`]
  })
}

/** `133 GiB tensors, 6.5 GiB fragmented, 29 MiB free` */
function ledgerText(report: OomReport): string {
  const least = ledgerTotal(report) * LEAST_SHARE
  return ledgerBySize(report)
    .filter(({ name, bytes }) => name === 'free' || bytes >= least)
    .map(({ name, bytes }) => `${formatBytes(bytes)} ${lowered(ledgerLabel(name))}`)
    .join(', ')
}

function lowered(label: string): string {
  return `${label.slice(0, 1).toLowerCase()}${label.slice(1)}`
}
