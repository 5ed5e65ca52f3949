/** Reads numbers out of a card's files and remembers why one could not be had. */
import { basename } from 'node:path'
import type { Reading } from '../../core/model.ts'
import type { Attribute } from './attribute.ts'
import { parseInteger } from './parse.ts'

export class CardReader {
  /** Files that were read in this tick, and those that could not be. */
  succeeded = 0
  readonly failures: Attribute[] = []
  /** A file that was there when they were looked for no longer is. */
  moved = false
  /** GpuInfo.unavailable; `changed` says that it did since it was last reset. */
  reasons: Record<string, string> = {}
  changed = false
  #nowMs = 0

  begin(monotonicMs: number): void {
    this.#nowMs = monotonicMs
    this.succeeded = 0
    this.failures.length = 0
  }

  text(file: Attribute | null): string {
    if (file === null) return ''
    const text = file.readText(this.#nowMs)
    this.#count(file, text !== null)
    return text ?? ''
  }

  bytes(file: Attribute | null): Buffer | null {
    if (file === null) return null
    const bytes = file.readBytes(this.#nowMs)
    this.#count(file, bytes !== null)
    return bytes
  }

  /** What the file holds over `divisor`; null without a word where the card has no such file. */
  number(field: string, file: Attribute | null, divisor: number): Reading {
    if (file === null) return null
    const read = parseInteger(this.text(file))
    const value = read !== null && read < 0 && !field.endsWith('Celsius') ? null : read
    this.note(field, value === null ? reasonOf(file) : null)
    return value === null ? null : value / divisor
  }

  /** All of them or nothing: half of a sum would be a wrong number. */
  sum(field: string, files: readonly Attribute[]): Reading {
    if (files.length === 0) return null
    let sum: Reading = 0
    let reason: string | null = null
    for (const file of files) {
      const read = parseInteger(this.text(file))
      const value = read !== null && read < 0 ? null : read
      sum = sum === null || value === null ? null : sum + value
      if (value === null) reason ??= reasonOf(file)
    }
    this.note(field, reason)
    return sum
  }

  ratio(field: string, file: Attribute | null, divisor: number): Reading {
    const value = this.number(field, file, divisor)
    return value === null ? null : Math.min(1, Math.max(0, value))
  }

  note(field: string, reason: string | null): void {
    if (this.reasons[field] === (reason ?? undefined)) return
    if (reason === null) delete this.reasons[field]
    else this.reasons[field] = reason
    this.changed = true
  }

  #count(file: Attribute, read: boolean): void {
    if (read) this.succeeded++
    else {
      this.failures.push(file)
      if (file.code === 'ENOENT') this.moved = true
    }
  }
}

function reasonOf(file: Attribute): string {
  return `${basename(file.path)} ${file.code === null ? 'holds no number' : `cannot be read (${file.code})`}`
}
