/** The file of the hours that are not in a day's file yet, with the totals of all that are. Always rewritten as a whole. */
import { absent, readFile } from '../core/disk.ts'
import type { OpenRow, Unsaved } from './book.ts'
import { decodeRow, encodeRow, type UsageRow } from './row.ts'
import type { SavedTotals } from './totals.ts'

export const OPEN_FILE = 'open.ndjson'

export interface OpenFile {
  readonly totals: readonly SavedTotals[]
  readonly unsaved: readonly (readonly [run: string, rows: readonly Unsaved[]])[]
  readonly rows: readonly OpenRow[]
}

/** The first line is about the ledger as a whole, then a line per row. */
export function encodeOpen({ totals, unsaved, rows }: OpenFile): string {
  const head = JSON.stringify({ version: 1, totals, unsaved, settled: rows.map(({ settledSeconds }) => Math.round(settledSeconds)) })
  return `${[head, ...rows.map(encodeRow)].join('\n')}\n`
}

/** null: there is none, or it is not readable as one. */
export async function readOpen(path: string): Promise<OpenFile | null> {
  const text = await readFile(path, 'utf8').catch(absent)
  if (text === null) return null
  const [first = '', ...lines] = text.split('\n')
  const head = headOf(first)
  if (head === null) return null
  const rows = lines.flatMap((line, index) => {
    const row = line === '' ? null : decodeRow(line)
    return row === null ? [] : [{ ...row, settledSeconds: settledOf(head.settled, index, row) }]
  })
  return { totals: list(head.totals), unsaved: list(head.unsaved), rows }
}

function headOf(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const head = JSON.parse(line) as Readonly<Record<string, unknown>> | null
    return head?.version === 1 ? head : null
  } catch {
    return null
  }
}

function settledOf(settled: unknown, index: number, { gpuSeconds }: UsageRow): number {
  const value = Array.isArray(settled) ? (settled as unknown[])[index] : undefined
  return typeof value === 'number' ? Math.min(value, gpuSeconds) : 0
}

function list<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? (value as T[]) : []
}
