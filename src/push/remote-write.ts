/** Prometheus remote write 1.0: a WriteRequest in protobuf, compressed with snappy. */
import type { Label, MetricFamily } from '../core/metric-family.ts'
import { ProtoWriter } from './protobuf.ts'
import { snappy } from './snappy.ts'

/** The NaN by which Prometheus knows that a series has ended (value.StaleNaN). */
const STALE_NAN = 0x7ff0000000000002n

export const REMOTE_WRITE_HEADERS = {
  'content-type': 'application/x-protobuf',
  'content-encoding': 'snappy',
  'x-prometheus-remote-write-version': '0.1.0',
} as const

export interface WriteRequest {
  readonly body: Uint8Array
  readonly samples: number
}

/** Remembers which series it has sent, so that one that is gone can be said to be gone. */
export class RemoteWriteEncoder {
  readonly #own: readonly Label[]
  readonly #request = new ProtoWriter()
  readonly #series = new ProtoWriter()
  readonly #part = new ProtoWriter()
  /** Encoded labels of each series, by its key. */
  #known = new Map<string, Uint8Array>()

  /** `own`: labels that every series gets, as a scrape would add them. */
  constructor(own: Readonly<Record<string, string>>) {
    this.#own = Object.entries(own)
  }

  encode(families: readonly MetricFamily[], atMs: number): WriteRequest {
    const before = this.#known
    const now = new Map<string, Uint8Array>()
    this.#request.clear()
    let samples = 0
    for (const family of families)
      for (const { name, labels, value, key } of family.series) {
        const encoded = before.get(key) ?? this.#labels(name, labels)
        now.set(key, encoded)
        this.#part.clear()
        this.#part.double(1, value)
        this.#add(encoded, atMs)
        samples++
      }
    for (const [key, encoded] of before) {
      if (now.has(key)) continue
      this.#stale(encoded, atMs)
      samples++
    }
    this.#known = now
    return { body: snappy(this.#request.bytes()), samples }
  }

  /** Says of every series that it has ended. */
  farewell(atMs: number): WriteRequest {
    return this.encode([], atMs)
  }

  #stale(encoded: Uint8Array, atMs: number): void {
    this.#part.clear()
    this.#part.fixed64(1, STALE_NAN)
    this.#add(encoded, atMs)
  }

  #add(encodedLabels: Uint8Array, atMs: number): void {
    this.#part.integer(2, atMs)
    const sample = this.#part.bytes()
    this.#series.clear()
    this.#series.message(2, sample)
    const tail = this.#series.bytes()
    const whole = new Uint8Array(encodedLabels.length + tail.length)
    whole.set(encodedLabels)
    whole.set(tail, encodedLabels.length)
    this.#request.message(1, whole)
  }

  /** Sorted by name, as the protocol wants them. A label of the series wins over one of ours, as with honor_labels. */
  #labels(name: string, labels: readonly Label[]): Uint8Array {
    const all = new Map<string, string>([...this.#own, ['__name__', name], ...labels])
    this.#series.clear()
    for (const [label, value] of [...all].sort(([a], [b]) => (a < b ? -1 : 1))) {
      // An empty label is the same as none, and some receivers refuse it.
      if (value === '') continue
      this.#part.clear()
      this.#part.string(1, label)
      this.#part.string(2, value)
      this.#series.message(1, this.#part.bytes())
    }
    return this.#series.bytes()
  }
}
