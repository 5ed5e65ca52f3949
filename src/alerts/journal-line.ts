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

const FORMAT = 1
/** Deletes all that came before. */
const NOTHING = '*'

/** A whole journal: one entry per line, so that damage costs one entry. `id` names it, wherever its folder is moved. */
export function encodeJournal(id: string, entries: Iterable<readonly [string, unknown]>): string {
  const lines = [encodeLine(headOf(id))]
  for (const [key, value] of entries) lines.push(encodeLine([[key, value]]))
  return lines.join('')
}

/** One line that counts instead of all before it. */
export function encodeEverything(id: string, entries: Iterable<readonly [string, unknown]>): string {
  return encodeLine([[NOTHING], ...headOf(id), ...entries])
}

function headOf(id: string): readonly Change[] {
  return [
    ['format', FORMAT],
    ['journal', id],
  ]
}

export interface DecodedJournal {
  /** null: of an earlier version. */
  readonly id: string | null
  readonly entries: Map<string, unknown>
  /** Why the file must be set aside before it is rewritten; null: it is whole. */
  readonly damage: string | null
}

/**
 * The last line may be torn: a kill in the middle of a write looks like that, and nothing depended on it yet. `unwritten` gives the lines that
 * were on their way to the journal of this id.
 */
export function decodeJournal(text: string, unwritten: (id: string) => string = () => ''): DecodedJournal {
  const entries = new Map<string, unknown>()
  let damaged = 0
  const take = (line: string) => {
    const changes = decodeLine(line)
    if (!changes) damaged++
    else
      for (const [key, value] of changes) {
        if (key === NOTHING) entries.clear()
        else if (value === undefined) entries.delete(key)
        else entries.set(key, value)
      }
  }
  text.split('\n').slice(0, -1).forEach(take)
  const id = entries.get('journal')
  if (typeof id === 'string') unwritten(id).split('\n').slice(0, -1).forEach(take)
  const format = entries.get('format')
  entries.delete('format')
  entries.delete('journal')
  const isOurs = format === FORMAT
  const strange = format === undefined ? 'it is not a journal of alerts' : `its format is ${String(format)}`
  return {
    id: isOurs && typeof id === 'string' ? id : null,
    entries: isOurs ? entries : new Map(),
    damage: !isOurs ? strange : damaged > 0 ? `${damaged} of its lines cannot be read` : null,
  }
}

function checksum(json: string): string {
  return crc32(json).toString(16).padStart(8, '0')
}

function isChange(change: unknown): change is Change {
  return Array.isArray(change) && typeof change[0] === 'string' && (change.length === 1 || change.length === 2)
}
