/** Fragmentation, in words. */
import { formatBytes } from '../../core/format.ts'
import type { Fragmentation, FreeParts } from '../verdict/fragmentation.ts'
import { counted, fitted, percent, WIDTH } from './words.ts'

const PARTS: readonly (readonly [keyof FreeParts, string])[] = [
  ['usableBytes', 'in pieces that are large enough'],
  ['wholeSegmentBytes', 'whole segments that are too small; empty_cache() gives them back'],
  ['pinnedBytes', 'in segments that a few blocks pin'],
  ['scatteredBytes', 'scattered between blocks in use'],
  ['otherStreamBytes', 'cached for another stream'],
  ['otherPoolBytes', 'in private pools (CUDA graphs, MemPool)'],
  ['otherSizeClassBytes', 'in segments of the other size class'],
]
const MOST_PINS = 5

/** One to three lines for the summary. */
export function fragmentationLines(found: Fragmentation | null): string[] {
  if (found === null) return ['no request in the file to measure it by']
  const { request, freeBytes, unusableRatio, largestFreeBytes, fitsIfCompacted, pins, pinnedSegments } = found
  if (unusableRatio === null) return [`nothing is free for a request of ${formatBytes(request.bytes)} (${request.source})`]
  const hasFailed = request.source === 'out of memory' && fitsIfCompacted !== null
  const fits = hasFailed ? `; it would ${fitsIfCompacted ? '' : 'not '}fit if compacted` : ''
  const lines = [
    `${percent(unusableRatio)} of ${formatBytes(freeBytes)} free is of no use for ${formatBytes(request.bytes)} (${request.source})`,
    `  largest free piece ${formatBytes(largestFreeBytes)}${fits}`,
  ]
  const [pin] = pins
  if (pin) lines.push(`  ${counted(pinnedSegments, 'segment')} pinned, mostly by ${fitted(pin.line, 60)}`)
  return lines
}

export function fragmentationDetails(found: Fragmentation | null): string[] {
  if (found === null) return fragmentationLines(found)
  const { request, parts, pins, expandable, roundingBytes, curve, isExact } = found
  const lines = [...fragmentationLines(found).slice(0, 2), `  asked for at ${fitted(request.line, WIDTH - 30)}`, '', 'Free memory']
  for (const [part, words] of PARTS) if (parts[part] > 0) lines.push(`  ${formatBytes(parts[part]).padStart(9)}  ${words}`)
  lines.push(`  ${formatBytes(roundingBytes).padStart(9)}  more is lost to rounding`)
  if (curve.length > 0) lines.push('', 'Share that is of no use, by size of the request', ...curveRows(curve))
  if (pins.length > 0) {
    lines.push('', 'Pinned by')
    for (const pin of pins.slice(0, MOST_PINS))
      lines.push(
        `  ${fitted(pin.line, WIDTH - 4)}`,
        `    ${counted(pin.blocks, 'block')}, ${formatBytes(pin.bytes)}, in ${counted(pin.segments, 'segment')}: without them ${formatBytes(pin.freesBytes)} is whole again`,
      )
  }
  lines.push('', expandableText(expandable))
  if (!isExact)
    lines.push('The state at that moment is rebuilt from the events: sizes of blocks that were freed later are rounded by rule.')
  return lines
}

function expandableText(bounds: Fragmentation['expandable']): string {
  if (bounds === null) return 'Expandable segments are in use.'
  if (bounds.atMostBytes === 0) return 'Expandable segments could give nothing here: no piece is free.'
  return `Expandable segments could make ${formatBytes(bounds.atLeastBytes)} to ${formatBytes(bounds.atMostBytes)} of it usable (bounds, not a promise).`
}

function curveRows(curve: Fragmentation['curve']): string[] {
  const cells = curve.map(({ requestBytes, unusableRatio }) => `${formatBytes(requestBytes)} ${percent(unusableRatio)}`)
  const rows: string[] = []
  for (const cell of cells) {
    const last = rows.at(-1)
    if (last !== undefined && last.length + cell.length + 3 <= WIDTH) rows[rows.length - 1] = `${last}   ${cell}`
    else rows.push(`  ${cell}`)
  }
  return rows
}
