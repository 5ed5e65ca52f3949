/** A handle and how calling it goes: what it will never answer, and whether the whole GPU is gone. */
import type { GpuField, Reading } from '../../core/model.ts'
import { CODE, isFault, isFinal, reasonInWords } from './codes.ts'
import type { Nvml } from './library.ts'

/** What a sample is made of; written in place, tick after tick. */
export type Readings = { -readonly [Field in GpuField]: Reading }

/** `never`: the same question would get the same answer; it is not asked again. */
export type Verdict = 'answered' | 'not-now' | 'never'

export class Device {
  readonly nvml: Nvml
  readonly handle: bigint
  /** GPU_IS_LOST or RESET_REQUIRED, as soon as any call said so; no call is made while it is set. */
  fault: number | null = null
  /** Changes with every change of `reasons`. */
  revision = 0
  readonly #reasons = new Map<string, string>()
  #answered = 0
  #error: number | null = null

  constructor(nvml: Nvml, handle: bigint) {
    this.nvml = nvml
    this.handle = handle
  }

  /** Takes the return code of a call that was to give `fields`. */
  judge(code: number, fields: readonly string[]): Verdict {
    if (code === CODE.ok) {
      this.#answered++
      return 'answered'
    }
    if (isFault(code)) {
      this.fault = code
      return 'not-now'
    }
    if (isFinal(code)) {
      for (const field of fields) this.explain(field, reasonInWords(code))
      return 'never'
    }
    if (code !== CODE.noData && code !== CODE.notFound) this.#error = code
    return 'not-now'
  }

  beginTick(): void {
    this.#answered = 0
    this.#error = null
  }

  /** The code with which every call of this tick failed; null when any one was answered. */
  totalFailure(): number | null {
    return this.#answered === 0 ? this.#error : null
  }

  explain(field: string, reason: string): void {
    if (this.#reasons.get(field) === reason) return
    this.#reasons.set(field, reason)
    this.revision++
  }

  /** Another way to this field was found. */
  unexplain(field: string): void {
    if (this.#reasons.delete(field)) this.revision++
  }

  /** A reason is known why this field is null. */
  lacks(field: string): boolean {
    return this.#reasons.has(field)
  }

  reasons(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#reasons)
  }
}
