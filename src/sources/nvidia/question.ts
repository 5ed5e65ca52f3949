/** Questions to one GPU that are asked again and again until it answers "never". */
import type { Reading } from '../../core/model.ts'
import { SYMBOL_MISSING } from './codes.ts'
import type { Device } from './device.ts'
import { readText, readUint32, readUint64 } from './layouts.ts'
import type { NvmlFunction } from './library.ts'
import type { SymbolName } from './symbols.ts'

/** Fills `out`; false when there is no answer, and from then on forever when there will be none. */
export type Question = (out: Buffer) => boolean

export interface QuestionTerms {
  /** Names in order of preference: the first that this driver has is called. */
  readonly symbols: readonly SymbolName[]
  /** What stays null without an answer; the reason is noted under these names. */
  readonly fields: readonly string[]
  /** Between handle and buffer. */
  readonly selector?: number
  /** After the buffer: a second one, a length. */
  readonly last?: Buffer | number
}

export function question(device: Device, terms: QuestionTerms): Question {
  const { fields } = terms
  const found = terms.symbols.map((name) => device.nvml.functions[name]).find((one) => one !== null)
  if (!found) {
    for (const field of fields) device.explain(field, SYMBOL_MISSING)
    return () => false
  }
  let call: ((out: Buffer) => number) | null = bind(found, device.handle, terms)
  return (out) => {
    if (call === null || device.fault !== null) return false
    const verdict = device.judge(call(out), fields)
    if (verdict === 'never') call = null
    return verdict === 'answered'
  }
}

function bind(call: NvmlFunction, handle: bigint, { selector, last }: QuestionTerms): (out: Buffer) => number {
  if (selector !== undefined) return (out) => call(handle, selector, out)
  if (last !== undefined) return (out) => call(handle, out, last)
  return (out) => call(handle, out)
}

const scratch = Buffer.alloc(128)

export function uint32Reading(device: Device, terms: QuestionTerms): () => Reading {
  const ask = question(device, terms)
  return () => (ask(scratch) ? readUint32(scratch, 0) : null)
}

export function uint64Reading(device: Device, terms: QuestionTerms): () => Reading {
  const ask = question(device, terms)
  return () => (ask(scratch) ? readUint64(scratch, 0) : null)
}

/** `length` null: the call takes none, and expects room for 64 bytes and more. */
export function textOf(device: Device, symbol: SymbolName, field: string, length: number | null = 96): string | null {
  scratch.fill(0)
  const terms = { symbols: [symbol], fields: [field], ...(length === null ? {} : { last: length }) }
  return question(device, terms)(scratch) ? readText(scratch, 0, 96) : null
}

/** NVML's nvmlEnableState_t. */
export function onOrOff(out: Buffer): 'enabled' | 'disabled' {
  return out.readUInt32LE(0) === 1 ? 'enabled' : 'disabled'
}

/** Keeps null null. */
export function scaled(value: Reading, factor: number): Reading {
  return value === null ? null : value * factor
}

export function divided(value: Reading, divisor: number): Reading {
  return value === null ? null : value / divisor
}
