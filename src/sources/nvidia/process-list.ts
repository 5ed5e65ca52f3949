import { CODE, isFinal, SYMBOL_MISSING } from './codes.ts'
import type { Device } from './device.ts'
import type { NvmlFunction } from './library.ts'
import { type DriverProcess, decodeProcesses, fillSentinel, MAX_STRIDE } from './process-layout.ts'
import type { SymbolName } from './symbols.ts'

/** More than any machine runs: a count above it is not believed. */
const MAX_PROCESSES = 16384
const MAX_ATTEMPTS = 4

const count = Buffer.alloc(4)

export class ProcessList {
  readonly #device: Device
  readonly #field: string | null
  #calls: NvmlFunction[]
  #room = 5
  #buffer = Buffer.alloc(5 * MAX_STRIDE)

  /** `field` gets the reason when no call works; null for a list that may be missing without loss. */
  constructor(device: Device, symbols: readonly SymbolName[], field: string | null) {
    this.#device = device
    this.#field = field
    this.#calls = symbols.map((name) => device.nvml.functions[name]).filter((one) => one !== null)
    if (this.#calls.length === 0 && field !== null) device.explain(field, SYMBOL_MISSING)
  }

  /** No call of this list works on this GPU. */
  get over(): boolean {
    return this.#calls.length === 0
  }

  /** null: could not be read this time. */
  read(): DriverProcess[] | null {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const call = this.#calls[0]
      if (call === undefined || this.#device.fault !== null) return null
      fillSentinel(this.#buffer, this.#room * MAX_STRIDE)
      count.writeUInt32LE(this.#room, 0)
      const code = call(this.#device.handle, count, this.#buffer)
      const present = count.readUInt32LE(0)
      if (code === CODE.insufficientSize) {
        if (present > MAX_PROCESSES) return null
        this.#grow(Math.max(present, this.#room))
      } else if (isFinal(code) && this.#calls.length > 1 && code !== CODE.noPermission) this.#calls.shift()
      else return this.#take(code, present)
    }
    return null
  }

  #take(code: number, present: number): DriverProcess[] | null {
    const verdict = this.#device.judge(code, this.#field === null ? [] : [this.#field])
    if (verdict === 'never') this.#calls = []
    if (verdict !== 'answered' || present > this.#room) return null
    const processes = decodeProcesses(this.#buffer, this.#room, present)
    if (processes === null && this.#field !== null)
      this.#device.explain(this.#field, 'the driver returns process entries of a size that gpuwarden does not know')
    // Room for twice as many next time, so that a growing list rarely needs a second call.
    if (2 * present + 5 > this.#room) this.#grow(present)
    return processes
  }

  #grow(present: number): void {
    this.#room = 2 * present + 5
    this.#buffer = Buffer.alloc(this.#room * MAX_STRIDE)
  }
}
