/** What is kept on disk of the past, how finely, and under which names. All times are UTC. */
import { join } from 'node:path'

export interface Tier {
  /** Name of its folder. */
  readonly name: '10s' | '1min' | '15min' | '1h'
  readonly stepMs: number
  /** What one file covers. */
  readonly period: 'day' | 'month' | 'year'
}

export const FINEST: Tier = { name: '10s', stepMs: 10_000, period: 'day' }
/** Finest first. */
export const TIERS: readonly Tier[] = [
  FINEST,
  { name: '1min', stepMs: 60_000, period: 'day' },
  { name: '15min', stepMs: 900_000, period: 'month' },
  { name: '1h', stepMs: 3_600_000, period: 'year' },
]

export const FOLDER = 'history'
export const JOURNAL_FOLDER = 'journal'
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

const NAME_CHARS = { day: 10, month: 7, year: 4 } as const

/** `2026-11-16`, `2026-11` or `2026`. */
export function periodOf(tier: Tier, at: number): string {
  return new Date(at).toISOString().slice(0, NAME_CHARS[tier.period])
}

const PERIOD = /^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?$/

/** First moment, and the first after it; null: not a period. */
export function boundsOfPeriod(name: string): { readonly from: number; readonly end: number } | null {
  const match = PERIOD.exec(name)
  if (!match) return null
  const [year = 0, month = 1, day = 1] = match.slice(1).flatMap((part) => (part === undefined ? [] : [Number(part)]))
  const from = Date.UTC(year, month - 1, day)
  if (match[3] !== undefined) return { from, end: from + DAY_MS }
  return { from, end: match[2] === undefined ? Date.UTC(year + 1, 0, 1) : Date.UTC(year, month, 1) }
}

/** An id may hold anything; a name of a folder may not. */
export function folderOfDevice(id: string): string {
  return encodeURIComponent(id).replace(/^\./, '%2E').slice(0, 200)
}

export function deviceOfFolder(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Relative to the folder of the history. */
export function tierFile(tier: Tier, device: string, at: number): string {
  return join(tier.name, folderOfDevice(device), `${periodOf(tier, at)}.parquet`)
}

/** `2026-11-16T05.jsonl`; files of imported logs have more between the hour and the ending. */
export function journalName(at: number): string {
  return `${new Date(at).toISOString().slice(0, 13)}.jsonl`
}

const JOURNAL = /^(\d{4}-\d\d-\d\d)T(\d\d)(?:\.[\w.-]+)?\.jsonl$/

/** First moment of its hour, and its day; null: not a journal. An imported file covers its whole day. */
export function parseJournalName(name: string): { readonly day: string; readonly from: number; readonly end: number } | null {
  const match = JOURNAL.exec(name)
  const day = match?.[1]
  if (!match || day === undefined) return null
  const from = Date.parse(`${day}T${match[2]}:00:00Z`)
  if (Number.isNaN(from)) return null
  const isImport = name.length > 'yyyy-mm-ddThh.jsonl'.length
  return { day, from, end: isImport ? Date.parse(`${day}T00:00:00Z`) + DAY_MS : from + HOUR_MS }
}
