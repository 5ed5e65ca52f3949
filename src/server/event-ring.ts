/** The last events, for clients that reconnect. Bounded in number and bytes; an event becomes text when a client wants it. */
import { toJson } from '../core/json-text.ts'
import type { StreamEvent } from '../core/kinds.ts'

export interface RingEntry {
  readonly seq: number
  readonly event: StreamEvent
  /** As sent to every client without a GPU filter; null until one asks. */
  frame: Buffer | null
  /** Bytes of the frame; an estimate until there is one. */
  bytes: number
}

export interface EventRing {
  push(event: StreamEvent): RingEntry
  /** Counts an event that nobody can ask for, and drops those before it. */
  skip(): void
  /** undefined: too old, or not there yet. */
  get(seq: number): RingEntry | undefined
  frame(entry: RingEntry): Buffer
  /** Of the newest event; 0 before the first. */
  readonly lastSeq: number
  readonly length: number
  readonly bytes: number
}

export interface RingOptions {
  readonly boot: string
  readonly maxEvents: number
  readonly maxBytes: number
}

export function createEventRing({ boot, maxEvents, maxBytes }: RingOptions): EventRing {
  const entries: RingEntry[] = []
  let lastSeq = 0
  let total = 0
  return {
    push(event) {
      lastSeq++
      const entry: RingEntry = { seq: lastSeq, event, frame: null, bytes: guessBytes(event) }
      entries.push(entry)
      total += entry.bytes
      while (entries.length > maxEvents || (total > maxBytes && entries.length > 1)) total -= entries.shift()?.bytes ?? 0
      return entry
    },
    skip() {
      lastSeq++
      entries.length = 0
      total = 0
    },
    get(seq) {
      const first = entries[0]
      return first ? entries[seq - first.seq] : undefined
    },
    frame(entry) {
      if (entry.frame === null) {
        entry.frame = encodeFrame(entry.event.type, entry.event, `${boot}-${entry.seq}`)
        // An entry may be sent after it left the ring; then its size no longer counts.
        if (this.get(entry.seq) === entry) total += entry.frame.length - entry.bytes
        entry.bytes = entry.frame.length
      }
      return entry.frame
    },
    get lastSeq() {
      return lastSeq
    },
    get length() {
      return entries.length
    },
    get bytes() {
      return total
    },
  }
}

/** One server-sent event. JSON has no line breaks, so one `data:` line is enough. */
export function encodeFrame(name: string, data: unknown, id: string | null, retryMs?: number): Buffer {
  // Ticks hold readings, which are finite or null; the replacer would triple their cost.
  const json = name === 'tick' ? JSON.stringify(data) : toJson(data)
  const retry = retryMs === undefined ? '' : `retry: ${retryMs}\n`
  return Buffer.from(`${id === null ? '' : `id: ${id}\n`}event: ${name}\n${retry}data: ${json}\n\n`)
}

/** Close enough: a tick of 8 GPUs with 8 processes and every reading is 20 KB of JSON; the estimate is 21.5. */
function guessBytes(event: StreamEvent): number {
  switch (event.type) {
    case 'tick':
      return (
        300 +
        event.tick.gpus.length * 2200 +
        event.tick.processes.length * 450 +
        (event.tick.host ? 500 + event.tick.host.processes.length * 400 : 0)
      )
    case 'devices':
      return 100 + event.devices.length * 2600
    case 'health':
      return 100 + event.health.length * 450
    case 'steps':
      return 100 + event.steps.length * 550
    case 'alerts':
      return 200 + event.alerts.length * 1500 + event.gone.length * 80
    default:
      return 1000
  }
}
