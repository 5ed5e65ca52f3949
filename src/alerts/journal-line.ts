/** One line of the journal: a checksum, then changes that belong together, as JSON. A line counts as a whole or not at all. */
import { crc32 } from 'node:zlib'

/** undefined deletes; JSON leaves the value out. */
export type Change = readonly [key: string, value: unknown] | readonly [key: string]

export function encodeLine(changes: readonly Change[]): string {
  const json = JSON.stringify(changes)
  return `${checksum(json)} ${json}\n`
}

/** null: damaged, or not ours. */
export function decodeLine(line: string): readonly Change[] | null {
  const json = line.slice(9)
  if (line[8] !== ' ' || line.slice(0, 8) !== checksum(json)) return null
  try {
    const changes: unknown = JSON.parse(json)
    return Array.isArray(changes) && changes.every(isChange) ? changes : null
  } catch {
    return null
  }
}

export interface DecodedJournal {
  readonly entries: Map<string, unknown>
  /** Lines that could not be read and were skipped. */
  readonly damaged: number
}

/** The last line may be torn: a kill in the middle of a write looks like that, and nothing depended on it yet. */
export function decodeJournal(text: string): DecodedJournal {
  const entries = new Map<string, unknown>()
  let damaged = 0
  const lines = text.split('\n')
  lines.pop()
  for (const line of lines) {
    const changes = decodeLine(line)
    if (!changes) damaged++
    else
      for (const [key, value] of changes) {
        if (value === undefined) entries.delete(key)
        else entries.set(key, value)
      }
  }
  return { entries, damaged }
}

function checksum(json: string): string {
  return crc32(json).toString(16).padStart(8, '0')
}

function isChange(change: unknown): change is Change {
  return Array.isArray(change) && typeof change[0] === 'string' && (change.length === 1 || change.length === 2)
}
