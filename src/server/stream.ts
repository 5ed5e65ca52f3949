/** The live stream of server-sent events. All clients read from one shared ring at their own speed, so a slow one costs no memory. */
import type { ServerResponse } from 'node:http'
import type { AlertNews } from '../core/alert-contract.ts'
import type { AgentState, HubEvent, Log, Sink, StreamEvent } from '../core/kinds.ts'
import { createEventRing, encodeFrame, type RingEntry } from './event-ring.ts'
import type { StreamHealth } from './schemas.ts'
import { GpuMatcher, narrow, type StreamFilter } from './stream-filter.ts'

const LIMITS = {
  ringEvents: 600,
  ringBytes: 6 * 1024 * 1024,
  /** What may wait in one client's socket before the rest waits in the ring. */
  clientBytes: 256 * 1024,
  drainTimeoutMs: 10_000,
  heartbeatMs: 15_000,
  retryMs: 2000,
}
export type StreamLimits = Readonly<typeof LIMITS>

export interface StreamOptions {
  readonly state: AgentState
  readonly boot: string
  readonly version: string
  readonly maxClients: number
  readonly log: Log
  /** Followed only while somebody listens, or could still resume. */
  readonly alertNews?: AlertNews | null
  readonly limits?: Partial<StreamLimits>
}

export interface JoinOptions {
  readonly filter: StreamFilter
  /** `<boot>-<n>`: the last event that the client has; null for a new one. */
  readonly lastEventId: string | null
  readonly address: string
}

export interface Stream {
  readonly sink: Required<Sink>
  readonly full: boolean
  health(): StreamHealth
  /** Takes over a response whose head was written. */
  join(outgoing: ServerResponse, options: JoinOptions): void
}

interface Client {
  readonly outgoing: ServerResponse
  readonly filter: StreamFilter
  readonly matcher: GpuMatcher | null
  readonly address: string
  /** The last event that was sent, or left out by the filter. */
  cursor: number
  /** Since when (monotonic milliseconds) the socket takes no more; null when it does. */
  blockedSince: number | null
}

const HEARTBEAT = Buffer.from(':\n\n')

export function createStream({ state, boot, version, maxClients, log, alertNews, limits: given }: StreamOptions): Stream {
  const limits = { ...LIMITS, ...given }
  const ring = createEventRing({ boot, maxEvents: limits.ringEvents, maxBytes: limits.ringBytes })
  const clients = new Set<Client>()
  /** The current event for each GPU filter; cleared for every event. */
  const narrowed = new Map<string, Buffer | null>()
  let droppedClients = 0
  let dropReason: string | null = null
  let timer: NodeJS.Timeout | null = null
  let heartbeatAt = 0
  let closed = false
  /** The newest event that somebody may resume from; null: nobody was here yet. */
  let knownSeq: number | null = null
  let unfollowAlerts: (() => void) | null = null
  /** Of the recording that is played: who comes later has to notice the next jump. */
  let playback: (HubEvent & { type: 'playback' }) | null = null

  function frameFor(client: Client, entry: RingEntry): Buffer | null {
    const { filter, matcher } = client
    if (filter.types !== null && !filter.types.has(entry.event.type)) return null
    if (matcher === null) return ring.frame(entry)
    const isNewest = entry.seq === ring.lastSeq
    const ready = isNewest ? narrowed.get(filter.key) : undefined
    if (ready !== undefined) return ready
    const event = narrow(entry.event, (gpu) => matcher.matches(gpu))
    let frame: Buffer | null = null
    if (event === entry.event) frame = ring.frame(entry)
    else if (event !== null) frame = encodeFrame(event.type, event, `${boot}-${entry.seq}`)
    if (isNewest) narrowed.set(filter.key, frame)
    return frame
  }

  function pump(client: Client, now: number): void {
    const { outgoing } = client
    while (client.cursor < ring.lastSeq) {
      const entry = ring.get(client.cursor + 1)
      if (!entry) {
        drop(client, `it fell more than ${ring.length} events behind`)
        return
      }
      // Below its own mark a stream does not say when it has drained (64 KiB from Node 22 on).
      if (outgoing.writableLength > Math.max(limits.clientBytes, outgoing.writableHighWaterMark)) break
      client.cursor = entry.seq
      const frame = frameFor(client, entry)
      if (frame !== null && !outgoing.write(frame)) client.blockedSince ??= now
    }
    if (client.blockedSince !== null && now - client.blockedSince > limits.drainTimeoutMs) {
      drop(client, `it read nothing for ${limits.drainTimeoutMs / 1000} s`)
    }
  }

  function drop(client: Client, why: string): void {
    if (!clients.delete(client)) return
    knownSeq = ring.lastSeq
    droppedClients++
    dropReason = `a client of the stream was too slow: ${why}`
    log.warn({ address: client.address, dropped: droppedClients }, dropReason)
    client.outgoing.destroy()
    rest()
  }

  function leave(client: Client): void {
    if (clients.delete(client)) knownSeq = ring.lastSeq
    rest()
  }

  /** No clients, no timer. */
  function rest(): void {
    if (clients.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }

  function sweep(): void {
    const now = performance.now()
    const beat = now - heartbeatAt >= limits.heartbeatMs
    if (beat) heartbeatAt = now
    for (const client of clients) {
      if (beat && client.blockedSince === null && !client.outgoing.write(HEARTBEAT)) client.blockedSince = now
      pump(client, now)
    }
  }

  function accept(event: StreamEvent): void {
    if (closed || event.type === 'restart') return
    if (event.type === 'playback') playback = event
    if (clients.size === 0 && !isAwaited()) {
      ring.skip()
      unfollowAlerts?.()
      unfollowAlerts = null
      return
    }
    ring.push(event)
    narrowed.clear()
    if (clients.size === 0) return
    const now = performance.now()
    for (const client of clients) {
      if (event.type === 'devices') client.matcher?.forget()
      pump(client, now)
    }
  }

  function followAlerts(): void {
    if (!closed) unfollowAlerts ??= alertNews?.follow(accept) ?? null
  }

  /** Whether somebody who left could still resume. */
  function isAwaited(): boolean {
    return knownSeq !== null && (knownSeq === ring.lastSeq || ring.get(knownSeq + 1) !== undefined)
  }

  /** Where to resume: the sequence number that the client has, or why it must start over. */
  function resumeFrom(lastEventId: string): number | 'another_boot' | 'too_old' {
    const [, ofBoot, seq] = /^([0-9a-z]+)-(\d{1,15})$/.exec(lastEventId) ?? []
    if (ofBoot !== boot || seq === undefined || Number(seq) > ring.lastSeq) return 'another_boot'
    return Number(seq) === ring.lastSeq || ring.get(Number(seq) + 1) ? Number(seq) : 'too_old'
  }

  function greet(client: Client, lastEventId: string | null): void {
    const { outgoing, filter, matcher } = client
    const newest = `${boot}-${ring.lastSeq}`
    const resumed = lastEventId === null ? null : resumeFrom(lastEventId)
    client.cursor = typeof resumed === 'number' ? resumed : ring.lastSeq
    const hello = { type: 'hello', version, hostname: state.hostname, boot, retryMs: limits.retryMs, heartbeatMs: limits.heartbeatMs }
    // Without an id the browser keeps its own, from which the replay continues.
    outgoing.write(encodeFrame('hello', hello, resumed === null ? newest : null, limits.retryMs))
    const current: readonly HubEvent[] = [
      { type: 'devices', devices: state.gpus().map(({ info }) => info) },
      { type: 'health', health: state.health() },
      ...(playback ? [playback] : []),
    ]
    for (const event of current) {
      const wanted = filter.types === null || filter.types.has(event.type)
      const shown = wanted && matcher ? narrow(event, (gpu) => matcher.matches(gpu)) : event
      if (wanted && shown) outgoing.write(encodeFrame(shown.type, shown, null))
    }
    if (typeof resumed === 'string') outgoing.write(encodeFrame('reset', { type: 'reset', reason: resumed }, newest))
  }

  function join(outgoing: ServerResponse, { filter, lastEventId, address }: JoinOptions): void {
    const matcher = filter.gpus && new GpuMatcher(filter.gpus, () => state.gpus())
    const client: Client = { outgoing, filter, matcher, address, cursor: ring.lastSeq, blockedSince: null }
    outgoing.on('drain', () => {
      client.blockedSince = null
      if (clients.has(client)) pump(client, performance.now())
    })
    outgoing.on('close', () => leave(client))
    outgoing.on('error', () => leave(client))
    clients.add(client)
    followAlerts()
    greet(client, lastEventId)
    if (outgoing.writableNeedDrain) client.blockedSince = performance.now()
    pump(client, performance.now())
    if (timer === null && clients.size > 0) {
      heartbeatAt = performance.now()
      timer = setInterval(sweep, Math.min(limits.heartbeatMs, limits.drainTimeoutMs / 2))
      timer.unref()
    }
  }

  async function close(): Promise<void> {
    if (closed) return
    closed = true
    const bye = encodeFrame('bye', { type: 'bye', reason: 'gpuwarden is stopping' }, null)
    for (const client of clients) client.outgoing.end(bye)
    clients.clear()
    unfollowAlerts?.()
    rest()
  }

  return {
    sink: { name: 'stream', accept, dropped: () => ({ count: droppedClients, reason: dropReason }), close },
    get full() {
      return closed || clients.size >= maxClients
    },
    health: () => {
      knownSeq = ring.lastSeq
      followAlerts()
      return {
        clients: clients.size,
        maxClients,
        droppedClients,
        bufferedEvents: ring.length,
        bufferedBytes: ring.bytes,
        lastEventId: `${boot}-${ring.lastSeq}`,
      }
    },
    join,
  }
}
