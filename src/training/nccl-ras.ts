/** NCCL's RAS service: which ranks its communicators have, which are missing, and how many collectives each has called. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reading } from '../core/model.ts'

export interface RasRank {
  readonly rank: number
  readonly pid: Reading
  /** Collectives of all kinds that it has called; null: unknown. */
  readonly calls: Reading
  readonly isDead: boolean
}

export interface RasCommunicator {
  readonly hash: string
  readonly size: number
  readonly ranks: readonly RasRank[]
}

export interface RasStatus {
  readonly communicators: readonly RasCommunicator[]
  /** What it reports as errors and warnings, where it answers in text only (before NCCL 2.28.7). */
  readonly notes: readonly string[]
}

export const RAS_PORT = 28_028
const ANSWER_MS = 3000
const MOST_BYTES = 4 * 1024 ** 2
const MOST_NOTES = 8
/** Counts differ for a moment in every training: only those that stay tell something. */
const AGAIN_MS = 1000

/** null: nobody answers there. Counts that still move are left out. */
export async function askRas(port: number): Promise<RasStatus | null> {
  const before = await askOnce(port)
  if (before === null || before.communicators.length === 0) return before
  await sleep(AGAIN_MS, undefined, { ref: false })
  const after = await askOnce(port)
  return after === null || JSON.stringify(after.communicators) === JSON.stringify(before.communicators) ? before : withoutCounts(after)
}

function withoutCounts({ communicators, notes }: RasStatus): RasStatus {
  return { notes, communicators: communicators.map((one) => ({ ...one, ranks: one.ranks.map((rank) => ({ ...rank, calls: null })) })) }
}

function askOnce(port: number): Promise<RasStatus | null> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect({ host: '127.0.0.1', port })
    const end = () => {
      socket.destroy()
      resolve(text === '' ? null : parseRas(text))
    }
    socket.setTimeout(ANSWER_MS, end)
    socket.setEncoding('utf8')
    socket.once('error', end)
    socket.once('close', end)
    socket.on('data', (piece: string) => {
      text += piece
      if (text.length > MOST_BYTES) end()
    })
    // It closes the connection after the status.
    socket.once('connect', () => socket.write('CLIENT PROTOCOL 2\nSET FORMAT json\nVERBOSE STATUS\n'))
  })
}

/** null: this is no answer of NCCL. */
export function parseRas(text: string): RasStatus | null {
  if (!text.startsWith('SERVER PROTOCOL')) return null
  const begin = text.indexOf('\n{')
  if (begin < 0) return { communicators: [], notes: notesOf(text) }
  // NCCL 2.28.9 leaves out the commas between missing ranks.
  const json = text.slice(begin).replace(/\}(\s*)\{/g, '},$1{')
  try {
    const { communicators } = JSON.parse(json) as { communicators?: unknown }
    return { communicators: listOf(communicators).map(communicatorOf), notes: [] }
  } catch {
    return { communicators: [], notes: [] }
  }
}

function communicatorOf(given: Fields): RasCommunicator {
  const present = listOf(given.ranks).map((one): RasRank => ({ ...rankOf(one), isDead: false }))
  const missing = listOf(given.missing_ranks).map((one): RasRank => {
    const status = fieldsOf(one.status)
    return { ...rankOf(one), calls: null, isDead: status.considered_dead === true }
  })
  return { hash: String(given.hash ?? ''), size: wholeOf(given.size) ?? present.length + missing.length, ranks: [...present, ...missing] }
}

function rankOf(given: Fields): Omit<RasRank, 'isDead'> {
  const counts = Object.values(fieldsOf(given.collective_counts)).map(wholeOf)
  const known = counts.filter((count) => count !== null)
  return {
    rank: wholeOf(given.rank) ?? -1,
    pid: wholeOf(given.pid),
    calls: known.length === 0 ? null : known.reduce((sum, count) => sum + count, 0),
  }
}

/** The lines under the headings `Errors` and `Warnings`. */
function notesOf(text: string): readonly string[] {
  const sections = [...text.matchAll(/^(?:Errors|Warnings)\n=+\n([\s\S]*?)(?=^\S[^\n]*\n=+$|(?![\s\S]))/gm)]
  return sections
    .flatMap(([, body = '']) => body.split('\n').map((line) => line.trim()))
    .filter((line) => line !== '')
    .map((line) => line.slice(0, 300))
    .slice(0, MOST_NOTES)
}

type Fields = Readonly<Record<string, unknown>>

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.slice(0, 4096).map(fieldsOf) : []
}

function wholeOf(value: unknown): Reading {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}
