/** The story of an out-of-memory, in words. */
import { formatBytes } from '../../core/format.ts'
import { causeWords, ledgerLabel, type WayOut, wayOutText } from '../../core/memory/oom-report.ts'
import type { OutOfMemory } from '../verdict/out-of-memory.ts'
import { fitted, LABEL_WIDTH, momentText, percent, shareRows, WIDTH } from './words.ts'

/** For the summary. */
export function oomLines(found: OutOfMemory): string[] {
  const { requestBytes, deviceFreeBytes, cause, waysOut, line } = found
  const left = deviceFreeBytes === null ? '' : `, ${formatBytes(deviceFreeBytes)} free`
  const asked = `${formatBytes(requestBytes)} asked for${left}, at `
  return [
    `${asked}${fitted(line, WIDTH - LABEL_WIDTH - asked.length)}`,
    `  cause: ${causeWords(cause)}`,
    ...waysOut.map((way, i) => `  ${i + 1}. ${wayText(way, WIDTH - LABEL_WIDTH - 6)}`),
  ]
}

export function oomDetails(found: OutOfMemory, firstUs: number | null): string[] {
  const { eventIndex, timeUs, ledger, heldByLine, heldByCategory, requestBytes, deviceFreeBytes, missingBytes, line, cause, waysOut } =
    found
  const total = ledger.reduce((sum, { bytes }) => sum + bytes, 0)
  const held = ledger.filter(({ bytes }) => bytes > 0)
  const missing = missingBytes === null ? '' : `, ${formatBytes(missingBytes)} too little`
  return [
    `Out of memory at ${momentText(eventIndex, timeUs, firstUs)}`,
    `  asked for   ${formatBytes(requestBytes)} at ${fitted(line, WIDTH - 30)}`,
    `  free        ${deviceFreeBytes === null ? 'not known' : `${formatBytes(deviceFreeBytes)} on the GPU${missing}`}`,
    `  cause       ${causeWords(cause)}`,
    '',
    'Where the memory was',
    ...held.map(({ name, bytes }) => `  ${formatBytes(bytes).padStart(9)} ${percent(bytes / total).padStart(4)}  ${ledgerLabel(name)}`),
    '',
    'Who held it',
    ...shareRows(heldByLine, 8, 0),
    '',
    `By category: ${heldByCategory
      .filter(({ bytes }) => bytes > 0)
      .map(({ name, ratio }) => `${name.replace('_', ' ')} ${percent(ratio)}`)
      .join(', ')}`,
    '',
    'Cheapest ways out',
    ...waysOut.map((way, i) => `  ${i + 1}. ${wayText(way, WIDTH - 5)}`),
  ]
}

function wayText(way: WayOut, width: number): string {
  const text = wayOutText(way)
  const { line } = way
  return line === null ? text : `${text} ${fitted(line, Math.max(30, width - text.length))}`
}
