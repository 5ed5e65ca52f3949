/** What an SDK wrote down when memory ran out. It comes from outside: what does not fit is left out, and the rest is kept. */
import { formatBytes } from '../format.ts'
import type { Reading } from '../model.ts'

const CAUSES = {
  leak: 'a leak',
  fragmentation: 'fragmentation',
  pending_free: 'memory that a stream still waited for',
  other_processes: 'taken by others',
  limit: 'a limit that was set',
  capacity: 'the GPU is too small for it',
  unknown: 'not known',
} as const

export type OomCauseKind = keyof typeof CAUSES

/** A line of code. */
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
  /** One of the ledger's names, or one that this version does not know. */
  readonly name: string
  readonly bytes: number
  readonly explanation: string | null
}

/** How much allocated memory at step ends grew before the end. */
export interface OomGrowth {
  readonly bytes: number
  readonly steps: Reading
  readonly bytesPerStep: Reading
  readonly seconds: Reading
}

export interface OomReport {
  readonly at: Reading
  /** Its id. */
  readonly run: string | null
  readonly rank: Reading
  readonly pid: Reading
  /** PyTorch's own words. */
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
  } | null
}

const LONGEST_TEXT = 4000
const LONGEST_NAME = 500
const MOST_ENTRIES = 32
const MOST_FRAMES = 64
const MOST_HOLDERS = 10
/** Of a Date. */
const LAST_MOMENT = 8.64e15

/** null: this says nothing about memory that ran out. */
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
  torch_pending_free: 'Freed, still awaited',
  torch_inactive_split: 'Unusable pieces',
  torch_releasable_cache: 'Cache that can be given back',
  non_torch: 'Context and libraries',
  outside_torch: 'Outside PyTorch',
  other_processes: 'Other processes',
  other: 'Not attributed',
  driver_reserve: 'Driver reserve',
  free: 'Free',
}

/** What a part of a ledger is called. */
export function ledgerLabel(name: string): string {
  return Object.hasOwn(LABELS, name) ? (LABELS[name] ?? name) : name.replaceAll('_', ' ')
}

export function causeWords(kind: OomCauseKind): string {
  return CAUSES[kind]
}

/** Someone looked, and found it. */
export function isCauseKnown(report: OomReport | null): boolean {
  return report?.cause != null && report.cause.kind !== 'unknown'
}

/** Parts that hold something, largest first, and what is free at the end. */
export function ledgerBySize({ ledger }: OomReport): readonly OomLedgerEntry[] {
  const held = ledger.filter(({ name, bytes }) => name !== 'free' && bytes > 0).sort((a, b) => b.bytes - a.bytes)
  return [...held, ...ledger.filter(({ name }) => name === 'free')]
}

export function ledgerTotal({ ledger }: OomReport): number {
  return ledger.reduce((sum, { bytes }) => sum + bytes, 0)
}

const NOT_OWN = /[\\/](?:site|dist)-packages[\\/]|[\\/]lib(?:64)?[\\/]python[\d.]+[\\/]|[\\/]python\d+[\\/]lib[\\/]|^<frozen /i

/** Where in the person's own code it happened; where all of it is installed packages, the innermost call. */
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

/** `by 48.8 GiB in 96 steps (520 MiB per step) and 18 s` */
export function growthText({ bytes, steps, bytesPerStep, seconds }: OomGrowth): string {
  const perStep = bytesPerStep === null ? '' : ` (${sizeText(bytesPerStep)} per step)`
  const time = seconds === null ? '' : `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const span = [steps === null ? '' : `${steps} steps${perStep}`, time].filter((part) => part !== '').join(' and ')
  return `by ${sizeText(bytes)}${span === '' ? '' : ` in ${span}`}`
}

/** Also of what is far below a mebibyte: one leaked tensor a step may be. */
export function sizeText(bytes: number): string {
  if (bytes >= 1024 ** 2) return formatBytes(bytes)
  return bytes >= 1024 ? `${Math.round(bytes / 1024)} KiB` : `${Math.round(bytes)} bytes`
}

/** `94.8 %`; what is there is never 0.0 %. */
export function shareText(bytes: number, total: number): string {
  const percent = total > 0 ? (100 * bytes) / total : 0
  return percent > 0 && percent < 0.05 ? '< 0.1 %' : `${percent.toFixed(1)} %`
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
  return { path, reason, bytes: amountOf(said.bytes), isComplete: typeof said.complete === 'boolean' ? said.complete : null }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : null
}

function listOf<Item>(value: unknown, read: (one: unknown) => Item | null): Item[] {
  return Array.isArray(value) ? value.map(read).filter((item): item is Item & {} => item !== null) : []
}

/** Everything counted here is 0 or more. */
function amountOf(value: unknown): Reading {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

function atMost(value: Reading, most: number): Reading {
  return value !== null && value <= most ? value : null
}

function textOf(value: unknown, longest: number): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.slice(0, longest) : null
}
