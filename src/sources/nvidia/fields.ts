/** Many field values in one call. A field that the GPU does not have leaves the batch; another way to it may take over. */
import type { GpuField, Reading } from '../../core/model.ts'
import { CODE, SYMBOL_MISSING } from './codes.ts'
import type { Device, Readings } from './device.ts'
import { decodeFieldValue, FIELD_VALUE_BYTES, fieldReturn } from './layouts.ts'
import { CounterRate } from './rates.ts'

/** scopeId of the NVLink counters: every link together. */
export const ALL_LINKS = 0xffff_ffff

export interface FieldTerms {
  readonly id: number
  readonly field: GpuField
  /** From the driver's unit to ours: dividing by 1000 gives the nearest decimal, multiplying by 0.001 does not. */
  readonly divisor: number
  readonly scope?: number
  /** The field is a counter, and its growth per second is what is wanted. */
  readonly rate?: true
  /** Asked when the field is not there; it notes its own reason. */
  readonly fallback?: () => Reading
}

export interface FieldAnswer {
  readonly code: number
  readonly value: Reading
}

/** One call for all of them; null when it failed as a whole. */
export function askFields(
  device: Device,
  fields: readonly { readonly id: number; readonly scope: number }[],
): readonly FieldAnswer[] | null {
  const call = device.nvml.functions.nvmlDeviceGetFieldValues
  if (call === null || fields.length === 0 || device.fault !== null) return null
  const buffer = request(fields)
  for (let i = 0; i < fields.length; i++) buffer.writeInt32LE(CODE.noData, i * FIELD_VALUE_BYTES + 28)
  if (device.judge(call(device.handle, fields.length, buffer), []) !== 'answered') return null
  return fields.map((_, i) => {
    const code = fieldReturn(buffer, i * FIELD_VALUE_BYTES)
    return { code, value: code === CODE.ok ? decodeFieldValue(buffer, i * FIELD_VALUE_BYTES) : null }
  })
}

interface Entry extends FieldTerms {
  readonly counter: CounterRate | null
}

export class FieldBatch {
  readonly #device: Device
  #entries: Entry[]
  #fallbacks: Entry[] = []
  #buffer: Buffer

  constructor(device: Device, terms: readonly FieldTerms[]) {
    this.#device = device
    this.#entries = terms.map((one) => ({ ...one, counter: one.rate ? new CounterRate() : null }))
    this.#buffer = request(this.#entries)
    if (device.nvml.functions.nvmlDeviceGetFieldValues === null) this.#dropAll(SYMBOL_MISSING)
  }

  read(out: Readings, monotonicMs: number): void {
    const device = this.#device
    const call = device.nvml.functions.nvmlDeviceGetFieldValues
    const entries = this.#entries
    if (call !== null && entries.length > 0 && device.fault === null) {
      const buffer = this.#buffer
      // An entry that the driver skips must not pass for the answer of the tick before.
      for (let i = 0; i < entries.length; i++) buffer.writeInt32LE(CODE.noData, i * FIELD_VALUE_BYTES + 28)
      const verdict = device.judge(call(device.handle, entries.length, buffer), [])
      if (verdict === 'never') this.#dropAll('not supported by this GPU')
      else this.#take(entries, verdict === 'answered', out, monotonicMs)
    } else for (const { field } of entries) out[field] = null
    for (const { field, fallback, divisor } of this.#fallbacks) {
      const value = fallback?.() ?? null
      out[field] = value === null ? null : value / divisor
    }
  }

  #take(entries: readonly Entry[], answered: boolean, out: Readings, monotonicMs: number): void {
    const device = this.#device
    let dropped = false
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry
      const offset = i * FIELD_VALUE_BYTES
      let value: Reading = null
      if (answered) {
        const code = fieldReturn(this.#buffer, offset)
        if (code === CODE.ok) value = decodeFieldValue(this.#buffer, offset)
        else if (device.judge(code, entry.fallback ? [] : [entry.field]) === 'never') {
          dropped = true
          this.#gone.add(entry)
        }
      }
      if (entry.counter) value = entry.counter.update(value, monotonicMs)
      if (value === null || value < 0) out[entry.field] = null
      else out[entry.field] = entry.counter ? Math.round(value / entry.divisor) : value / entry.divisor
    }
    if (dropped) this.#dropGone()
  }

  readonly #gone = new Set<Entry>()

  #dropGone(): void {
    this.#fallbacks = [...this.#fallbacks, ...[...this.#gone].filter((one) => one.fallback)]
    this.#entries = this.#entries.filter((one) => !this.#gone.has(one))
    this.#gone.clear()
    this.#buffer = request(this.#entries)
  }

  #dropAll(reason: string): void {
    for (const entry of this.#entries) {
      this.#gone.add(entry)
      if (!entry.fallback) this.#device.explain(entry.field, reason)
    }
    this.#dropGone()
  }
}

function request(entries: readonly { readonly id: number; readonly scope?: number }[]): Buffer {
  const buffer = Buffer.alloc(entries.length * FIELD_VALUE_BYTES)
  for (const [position, { id, scope }] of entries.entries()) {
    buffer.writeUInt32LE(id, position * FIELD_VALUE_BYTES)
    buffer.writeUInt32LE(scope ?? 0, position * FIELD_VALUE_BYTES + 4)
  }
  return buffer
}
