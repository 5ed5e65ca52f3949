import type { JsonRecord } from '../core/record.ts'
import { STREAMS, type StreamName } from './file-name.ts'
import type { LineQueue } from './line-queue.ts'
import { LogStream, type StreamRules } from './stream.ts'

export interface OutboxTotals {
  readonly bytesWritten: number
  readonly filesOpened: number
  readonly pendingLines: number
  readonly pendingBytes: number
}

/** All streams, and one limit for what waits in them. */
export class Outbox {
  readonly #streams: Readonly<Record<StreamName, LogStream>>
  readonly #bufferBytes: number
  readonly #onDrop: (at: number) => void
  /** Bytes pushed since the last exact count; what was written since is still included. */
  #waitingAtMost = 0

  constructor(rules: StreamRules, bufferBytes: number, onDrop: (at: number) => void) {
    this.#streams = Object.fromEntries(STREAMS.map((name) => [name, new LogStream(name, rules)])) as Record<StreamName, LogStream>
    this.#bufferBytes = bufferBytes
    this.#onDrop = onDrop
  }

  push(stream: StreamName, record: JsonRecord, at: number): void {
    const { queue } = this.#streams[stream]
    const before = queue.bytes
    queue.push(`${JSON.stringify(record)}\n`, at)
    this.#waitingAtMost += queue.bytes - before
    if (this.#waitingAtMost <= this.#bufferBytes) return
    let waiting = 0
    for (const name of STREAMS) waiting += this.#streams[name].pendingBytes
    while (waiting > this.#bufferBytes) {
      const line = this.#longestQueue().shift()
      if (!line) break
      waiting -= line.bytes
      this.#onDrop(line.at)
    }
    this.#waitingAtMost = waiting
  }

  /** Drops what waits in one stream. */
  discard(stream: StreamName): void {
    this.#streams[stream].queue.clear()
  }

  /** One stream after the other; returns the first error, if any. */
  async drain(): Promise<Error | null> {
    let fault: Error | null = null
    for (const name of STREAMS) {
      const own = await this.#streams[name].drain()
      fault ??= own
    }
    return fault
  }

  async closeFiles(): Promise<void> {
    for (const name of STREAMS) await this.#streams[name].rotate()
  }

  isEmpty(): boolean {
    for (const name of STREAMS) if (this.#streams[name].queue.length > 0) return false
    return true
  }

  currentFiles(): readonly string[] {
    return STREAMS.flatMap((name) => this.#streams[name].currentFile ?? [])
  }

  totals(): OutboxTotals {
    const sum = (value: (stream: LogStream) => number) => STREAMS.reduce((total, name) => total + value(this.#streams[name]), 0)
    return {
      bytesWritten: sum((stream) => stream.bytesWritten),
      filesOpened: sum((stream) => stream.filesOpened),
      pendingLines: sum((stream) => stream.pendingLines),
      pendingBytes: sum((stream) => stream.pendingBytes),
    }
  }

  /** The samples make room, so that the rare lines (events, findings, devices) survive a long outage. */
  #longestQueue(): LineQueue {
    return STREAMS.map((name) => this.#streams[name].queue).reduce((longest, queue) => (queue.bytes > longest.bytes ? queue : longest))
  }
}
