/** One line of a batch of steps. Pure; a line that cannot be used gives the reason instead. */
import type { Mutable } from '../core/fields/field.ts'

import { numberOf } from '../core/json-text.ts'
import type { Reading, TrainingStep } from '../core/model.ts'
import { NO_STEP, STEP_COLUMNS } from '../core/record.ts'
import { parseJson } from '../core/recording/json.ts'
import { type LayerLook, readLayers, readNonFinite } from './layer-line.ts'

export type Sender = number | string

export interface ReceivedStep {
  /** Per rank and sender, from 1, increasing: makes a retry harmless. */
  readonly seq: number
  readonly step: TrainingStep
  /** Who counts `seq`: the process, and its session where it names one. A resumed run may have the same PID, and count from 1 again. */
  readonly sender: Sender
  readonly pid: Reading
  readonly localRank: Reading
  readonly worldSize: Reading
  /** Figures of the model's layers; null in most steps. */
  readonly layers: LayerLook | null
}

type Json = Readonly<Record<string, unknown>>

const HIGHEST_RANK = 1_000_000
const LONGEST_NAME = 100
/** For a sender that does not say which process it is. */
const NO_PID = 0
const MOST_PHASES = 32
const EARLIEST_AT = Date.UTC(2000, 0, 1)
const LATEST_AT = Date.UTC(2200, 0, 1)
const NO_VALUES: Json = {}

const FIGURES = STEP_COLUMNS.map(({ field, sent, allocator = false }) => ({
  field,
  sent,
  place: allocator ? `alloc.${sent}` : sent,
  allocator,
}))

class LineFault extends Error {}

/** `receivedAt` stands in for a missing time. */
export function parseReceivedStep(text: string, run: string, receivedAt: number): ReceivedStep | string {
  const value = parseJson(text)
  if (value === undefined) return 'not JSON'
  if (!isObject(value)) return 'not an object'
  try {
    return readStep(value, run, receivedAt)
  } catch (error) {
    if (error instanceof LineFault) return error.message
    throw error
  }
}

function readStep(line: Json, run: string, receivedAt: number): ReceivedStep {
  const alloc = line.alloc === undefined || line.alloc === null ? NO_VALUES : objectOf(line.alloc, 'alloc')
  const at = line.t === undefined || line.t === null ? receivedAt : finite(line.t, 't')
  if (at < EARLIEST_AT || at > LATEST_AT) throw new LineFault(`t: expected epoch milliseconds, got ${at}`)
  const seq = whole(line.seq, 'seq', 1, Number.MAX_SAFE_INTEGER)
  const step: Mutable<TrainingStep> = { ...NO_STEP }
  step.at = at
  step.run = run
  step.rank = line.rank === undefined ? 0 : whole(line.rank, 'rank', 0, HIGHEST_RANK)
  step.step = whole(line.step, 'step', 0, Number.MAX_SAFE_INTEGER)
  for (const { field, sent, place, allocator } of FIGURES) {
    const value = allocator ? alloc[sent] : line[sent]
    if (value !== undefined) step[field] = allocator ? count(value, place) : reading(value, place)
  }
  step.phaseSeconds = numbers(line.phases, 'phases', MOST_PHASES)
  step.custom = numbers(line.custom, 'custom', Number.POSITIVE_INFINITY)
  const nonFinite = line.non_finite === undefined ? null : readNonFinite(line.non_finite)
  if (nonFinite !== null) step.nonFinite = nonFinite
  const layers = line.layers === undefined || line.layers === null ? null : readLayers(line.layers)
  if (typeof layers === 'string') throw new LineFault(layers)
  const pid = count(line.pid, 'pid')
  return {
    seq,
    step,
    sender: senderOf(pid ?? NO_PID, line.session),
    pid,
    localRank: count(line.local_rank, 'local_rank'),
    worldSize: count(line.world_size, 'world_size'),
    layers,
  }
}

function senderOf(pid: number, session: unknown): Sender {
  if (session === undefined || session === null) return pid
  const isText = typeof session === 'string' && session.length <= LONGEST_NAME
  if (!isText && !Number.isFinite(session)) throw new LineFault(`session: expected up to ${LONGEST_NAME} characters or a number`)
  return `${pid}/${String(session)}`
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function objectOf(value: unknown, name: string): Json {
  if (isObject(value)) return value
  throw new LineFault(`${name}: expected an object, got ${shown(value)}`)
}

/** NaN and ±Infinity are values: a loss can be either. */
function reading(value: unknown, name: string): Reading {
  if (typeof value === 'number') return value
  if (value === undefined || value === null) return null
  const number = numberOf(value)
  if (number === null) throw new LineFault(`${name}: expected a number, got ${shown(value)}`)
  return number
}

function finite(value: unknown, name: string): number {
  const number = reading(value, name)
  if (number === null || !Number.isFinite(number)) throw new LineFault(`${name}: expected a finite number, got ${shown(value)}`)
  return number
}

/** Bytes, counts and PIDs: not finite or below zero means not known. */
function count(value: unknown, name: string): Reading {
  const number = reading(value, name)
  return number === null || !Number.isFinite(number) || number < 0 ? null : number
}

function whole(value: unknown, name: string, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new LineFault(`${name}: expected a whole number of at least ${least}, got ${shown(value)}`)
}

function numbers(value: unknown, name: string, most: number): Readonly<Record<string, number>> | null {
  if (value === undefined || value === null) return null
  const given = objectOf(value, name)
  const out: Record<string, number> = {}
  let taken = 0
  for (const key in given) {
    if (key.length > LONGEST_NAME) throw new LineFault(`${name}: a name is longer than ${LONGEST_NAME} characters`)
    const number = reading(given[key], `${name}.${key}`)
    if (number === null || key === '__proto__') continue
    if (++taken > most) throw new LineFault(`${name}: more than ${most} names`)
    out[key] = number
  }
  return taken === 0 ? null : out
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : (JSON.stringify(value)?.slice(0, 60) ?? typeof value)
}
