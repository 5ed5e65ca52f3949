/** A file of PyTorch's flight recorder: the last collectives of one rank. Read from plain values of any origin. */
import type { Reading } from '../model.ts'
import type { StackFrame } from './rank-stacks.ts'

export interface FlightEntry {
  readonly group: string
  readonly description: string | null
  readonly seq: number
  /** `all_reduce` */
  readonly op: string
  readonly isP2p: boolean
  readonly sizes: string
  readonly dtypes: string
  /** It has ended on this rank. */
  readonly isDone: boolean
  /** scheduled, started, completed */
  readonly state: string
  /** Epoch ms. */
  readonly createdAt: Reading
  readonly frames: readonly StackFrame[]
}

export interface FlightDump {
  readonly rank: number
  readonly version: string
  readonly entries: readonly FlightEntry[]
  /** Members of each group; absent where the file does not say. */
  readonly members: ReadonlyMap<string, readonly number[]>
}

const MOST_ENTRIES = 200_000
const MOST_FRAMES = 64

/** null: this is no dump. */
export function flightDump(rank: number, value: unknown): FlightDump | null {
  const top = fieldsOf(value)
  if (!('version' in top) || !('pg_config' in top || 'entries' in top)) return null
  const members = new Map<string, readonly number[]>()
  for (const [name, config] of Object.entries(fieldsOf(top.pg_config))) {
    const ranks = ranksOf(fieldsOf(config).ranks)
    if (name !== '' && ranks.length > 0) members.set(name, ranks)
  }
  const entries = listOf(top.entries).slice(-MOST_ENTRIES).map(entryOf)
  return { rank, version: String(top.version), members, entries: entries.filter(({ seq }) => seq >= 0) }
}

function entryOf(value: unknown): FlightEntry {
  const entry = fieldsOf(value)
  const [group, description] = listOf(entry.process_group).map(String)
  const isP2p = entry.is_p2p === true
  const state = String(entry.state ?? '')
  const created = Number(entry.time_created_ns ?? 0)
  return {
    group: group ?? String(entry.pg_id ?? ''),
    description: description === undefined || description === '' || description === 'undefined' ? null : description,
    seq: Number(isP2p ? entry.p2p_seq_id : entry.collective_seq_id) || 0,
    op: String(entry.profiling_name ?? '').replace(/^\w+:/, ''),
    isP2p,
    sizes: JSON.stringify(entry.input_sizes ?? []),
    dtypes: listOf(entry.input_dtypes).join(', '),
    isDone: entry.retired === true || state === 'completed',
    state,
    createdAt: created > 0 ? created / 1e6 : null,
    frames: listOf(entry.frames).slice(0, MOST_FRAMES).map(frameOf),
  }
}

function frameOf(value: unknown): StackFrame {
  const frame = fieldsOf(value)
  return { file: String(frame.filename ?? ''), line: Number(frame.line) || 0, function: String(frame.name ?? '') }
}

/** `[0, 1]` as text or as a list. */
function ranksOf(value: unknown): readonly number[] {
  const list = typeof value === 'string' ? value.replace(/[[\]\s]/g, '').split(',') : listOf(value)
  return list
    .filter((one) => one !== '')
    .map(Number)
    .filter((one) => Number.isInteger(one) && one >= 0)
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
