/** What an SDK recorded when memory ran out. Untrusted: parts that do not fit are left out. */
import { formatBytes, formatDuration } from '../format.ts'
import type { Reading } from '../model.ts'

const CAUSES = {
  leak: 'a leak',
  fragmentation: 'fragmentation',
  pending_free: 'freed memory that a stream still used',
  other_processes: 'other processes took the memory',
  limit: 'a configured limit',
  growing_steps: 'steps needed more and more',
  sudden: 'one step needed far more',
  evaluation: 'evaluation needed more than training',
  host_memory: 'the host ran out of memory',
  capacity: 'the GPU is too small',
  unknown: 'unknown',
} as const

export type OomCauseKind = keyof typeof CAUSES

export interface CodePlace {
  readonly file: string
  readonly line: Reading
  readonly function: string | null
}

export interface OomHolder extends CodePlace {
  readonly bytes: number
  readonly blocks: Reading
}

export interface OomLedgerEntry {
  /** A LedgerName, or one that this version does not know. */
  readonly name: string
  readonly bytes: number
  readonly explanation: string | null
}

/** Growth of allocated memory at step ends. */
export interface OomGrowth {
  readonly bytes: number
  readonly steps: Reading
  readonly bytesPerStep: Reading
  readonly seconds: Reading
}

export interface OomReport {
  readonly at: Reading
  readonly run: string | null
  readonly rank: Reading
  readonly pid: Reading
  /** From PyTorch. */
  readonly message: string | null
  readonly requestedBytes: Reading
  readonly cause: { readonly kind: OomCauseKind; readonly message: string | null } | null
  /** Outermost call first. */
  readonly stack: readonly CodePlace[]
  readonly ledger: readonly OomLedgerEntry[]
  /** By line of code, largest first; empty where no memory history was recorded. */
  readonly holders: readonly OomHolder[]
  readonly growth: OomGrowth | null
  readonly allocatorSettings: string | null
  readonly allocatorRetries: Reading
  readonly peakAllocatedBytes: Reading
  readonly snapshot: {
    readonly path: string | null
    readonly reason: string | null
    readonly bytes: Reading
    readonly isComplete: boolean | null
    /** Cheapest first; empty where it was not analyzed. */
    readonly waysOut: readonly WayOut[]
  } | null
}

/** What would have made room, as the analysis of a snapshot says. */
export interface WayOut {
  readonly what: string
  /** Where; null: nowhere in particular. */
  readonly line: string | null
  /** What it gives; a bound where `isBound`. */
  readonly bytes: number
  readonly isBound: boolean
  /** It is enough for the request by itself. */
  readonly isEnough: boolean
}

const LONGEST_TEXT = 4000
const LONGEST_NAME = 500
const MOST_ENTRIES = 32
const MOST_FRAMES = 64
const MOST_HOLDERS = 10
const MOST_WAYS = 3
/** Of a Date. */
const LAST_MOMENT = 8.64e15

/** null: not a report of an out-of-memory error. */
export function readOomReport(value: unknown): OomReport | null {
  const said = objectOf(value)
  if (said === null || (said.kind !== undefined && said.kind !== 'oom')) return null
  const allocator = objectOf(said.allocator)
  const report: OomReport = {
    at: atMost(amountOf(said.at), LAST_MOMENT),
    run: textOf(said.run, LONGEST_NAME),
    rank: amountOf(said.rank),
    pid: amountOf(said.pid),
    message: textOf(said.message, LONGEST_TEXT),
    requestedBytes: amountOf(said.requested_bytes),
    cause: causeOf(said.cause),
    stack: listOf(said.stack, placeOf).slice(-MOST_FRAMES),
    ledger: listOf(said.ledger, entryOf).slice(0, MOST_ENTRIES),
    holders: listOf(said.holders, holderOf)
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, MOST_HOLDERS),
    growth: growthOf(said.growth),
    allocatorSettings: textOf(said.allocator_settings, LONGEST_NAME),
    allocatorRetries: amountOf(allocator?.retries),
    peakAllocatedBytes: amountOf(allocator?.peak_allocated),
    snapshot: snapshotOf(said.snapshot),
  }
  const { cause, message, stack, ledger, holders, growth } = report
  const isEmpty = cause === null && message === null && growth === null && stack.length + ledger.length + holders.length === 0
  return isEmpty ? null : report
}

const LABELS: Readonly<Record<string, string>> = {
  torch_allocated: 'Tensors',
  torch_rounding: 'Rounding',
  torch_pending_free: 'Pending free',
  torch_inactive_split: 'Fragmented',
  torch_releasable_cache: 'Releasable cache',
  non_torch: 'Context and libraries',
  outside_torch: 'Outside PyTorch',
  other_processes: 'Other processes',
  other: 'Not attributed',
  driver_reserve: 'Driver reserve',
  free: 'Free',
}

export function ledgerLabel(name: string): string {
  return Object.hasOwn(LABELS, name) ? (LABELS[name] ?? name) : name.replaceAll('_', ' ')
}

export function causeWords(kind: OomCauseKind): string {
  return CAUSES[kind]
}

export function isCauseKnown(report: OomReport | null): boolean {
  return report?.cause != null && report.cause.kind !== 'unknown'
}

/** Largest first, free memory last. */
export function ledgerBySize({ ledger }: OomReport): readonly OomLedgerEntry[] {
  const held = ledger.filter(({ name, bytes }) => name !== 'free' && bytes > 0).sort((a, b) => b.bytes - a.bytes)
  return [...held, ...ledger.filter(({ name }) => name === 'free')]
}

export function ledgerTotal({ ledger }: OomReport): number {
  return ledger.reduce((sum, { bytes }) => sum + bytes, 0)
}

const NOT_OWN = /[\\/](?:site|dist)-packages[\\/]|[\\/]lib(?:64)?[\\/]python[\d.]+[\\/]|[\\/]python\d+[\\/]lib[\\/]|^<frozen /i

/** The innermost call in the user's own code; else the innermost call. */
export function ownPlace({ stack }: OomReport): CodePlace | null {
  return stack.findLast(({ file }) => isOwnFile(file)) ?? stack.at(-1) ?? null
}

/** Not of an installed package, nor of Python itself. */
export function isOwnFile(file: string): boolean {
  return !NOT_OWN.test(file)
}

/** `/home/user/train.py:33 in leak` */
export function placeText({ file, line, function: name }: CodePlace): string {
  return `${file}${line === null ? '' : `:${line}`}${name === null ? '' : ` in ${name}`}`
}

/** `up to 284 MiB, not enough alone: use expandable segments`; its line follows where there is one. */
export function wayOutText({ what, bytes, isBound, isEnough }: WayOut): string {
  return `${isBound ? 'up to ' : ''}${formatBytes(bytes)}${isEnough ? '' : ', not enough alone'}: ${what}`
}

/** `by 48.8 GiB in 96 steps (520 MiB per step) and 18 s` */
export function growthText({ bytes, steps, bytesPerStep, seconds }: OomGrowth): string {
  const perStep = bytesPerStep === null ? '' : ` (${formatBytes(bytesPerStep)} per step)`
  const time = seconds === null ? '' : formatDuration(seconds * 1000)
  const span = [steps === null ? '' : `${steps} steps${perStep}`, time].filter((part) => part !== '').join(' and ')
  return `by ${formatBytes(bytes)}${span === '' ? '' : ` in ${span}`}`
}

function causeOf(value: unknown): OomReport['cause'] {
  const said = objectOf(value)
  if (said === null) return null
  const { kind } = said
  const message = textOf(said.message, LONGEST_TEXT)
  if (typeof kind === 'string' && Object.hasOwn(CAUSES, kind)) return { kind: kind as OomCauseKind, message }
  return message === null ? null : { kind: 'unknown', message }
}

function placeOf(value: unknown): CodePlace | null {
  const said = objectOf(value)
  const file = textOf(said?.file, LONGEST_NAME)
  if (said === null || file === null) return null
  return { file, line: amountOf(said.line), function: textOf(said.function, LONGEST_NAME) }
}

function holderOf(value: unknown): OomHolder | null {
  const place = placeOf(value)
  const said = objectOf(value)
  const bytes = amountOf(said?.bytes)
  return place === null || bytes === null ? null : { ...place, bytes, blocks: amountOf(said?.blocks) }
}

function entryOf(value: unknown): OomLedgerEntry | null {
  const said = objectOf(value)
  const name = textOf(said?.name, LONGEST_NAME)
  const bytes = amountOf(said?.bytes)
  return name === null || bytes === null ? null : { name, bytes, explanation: textOf(said?.explanation, LONGEST_NAME) }
}

function growthOf(value: unknown): OomGrowth | null {
  const said = objectOf(value)
  const bytes = amountOf(said?.bytes)
  if (said === null || bytes === null || bytes === 0) return null
  return { bytes, steps: amountOf(said.steps), bytesPerStep: amountOf(said.bytes_per_step), seconds: amountOf(said.seconds) }
}

function snapshotOf(value: unknown): OomReport['snapshot'] {
  const said = objectOf(value)
  if (said === null) return null
  const [path, reason] = [textOf(said.path, LONGEST_TEXT), textOf(said.reason, LONGEST_NAME)]
  if (path === null && reason === null) return null
  const isComplete = typeof said.complete === 'boolean' ? said.complete : null
  return { path, reason, bytes: amountOf(said.bytes), isComplete, waysOut: listOf(said.ways_out, wayOutOf).slice(0, MOST_WAYS) }
}

function wayOutOf(value: unknown): WayOut | null {
  const said = objectOf(value)
  const what = textOf(said?.what, LONGEST_NAME)
  const bytes = amountOf(said?.bytes)
  if (said === null || what === null || bytes === null) return null
  return { what, bytes, line: textOf(said.line, LONGEST_NAME), isBound: said.is_bound === true, isEnough: said.is_enough === true }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : null
}

function listOf<Item>(value: unknown, read: (one: unknown) => Item | null): Item[] {
  return Array.isArray(value) ? value.map(read).filter((item): item is Item & {} => item !== null) : []
}

function amountOf(value: unknown): Reading {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

function atMost(value: Reading, most: number): Reading {
  return value !== null && value <= most ? value : null
}

function textOf(value: unknown, longest: number): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.slice(0, longest) : null
}
