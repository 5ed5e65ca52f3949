/** Small random runs whose levels are known at every event, as snapshots of any kind. */
import fc from 'fast-check'
import type { WriterOptions } from '../../../bench/snapshot/pickle-writer.mjs'
import { type Shared, Tuple } from '../../../bench/snapshot/pickle-writer.mjs'
import { frame, readValue } from '../read/snapshot.fixture.ts'
import { devicesOf } from './device.ts'
import { DeviceAnalysis } from './device-analysis.ts'

const SEGMENTS = 3
const SLOTS = 6
const SLOT_BYTES = 2 ** 21
const BASE = 0x7f0000000000

interface Operation {
  readonly segment: number
  readonly slot: number
  readonly bytes: number
  readonly stack: number
  /** A free that waits for a stream before it is complete. */
  readonly isLate: boolean
}

const operation = fc.record({
  segment: fc.nat(SEGMENTS - 1),
  slot: fc.nat(SLOTS - 1),
  bytes: fc.integer({ min: 1, max: SLOT_BYTES }),
  stack: fc.nat(5),
  isLate: fc.boolean(),
})

export const randomOperations = fc.array(operation, { minLength: 1, maxLength: 60 })

interface Event {
  readonly action: string
  readonly addr: number
  readonly size: number
  readonly frames: readonly Shared[]
}

export interface Run {
  readonly events: readonly Event[]
  /** After each event. */
  readonly allocated: readonly number[]
  readonly reserved: readonly number[]
  readonly live: ReadonlyMap<number, { readonly bytes: number; readonly frames: readonly Shared[]; readonly isPending: boolean }>
  readonly open: ReadonlySet<number>
}

/** An operation takes a slot that is free and frees one that is taken; segments come with their first use and go with their last. */
export function runOf(operations: readonly Operation[]): Run {
  const stacks = Array.from({ length: 6 }, (_, i) => [frame('make', `/app/file${i}.py`, 10 + i), frame('main', '/app/main.py', 1)])
  const live = new Map<number, { bytes: number; frames: readonly Shared[]; isPending: boolean }>()
  const open = new Set<number>()
  const events: Event[] = []
  const [allocated, reserved]: [number[], number[]] = [[], []]
  const add = (action: string, addr: number, size: number, frames: readonly Shared[]) => {
    events.push({ action, addr, size, frames })
    allocated.push([...live.values()].reduce((sum, { bytes }) => sum + bytes, 0))
    reserved.push(open.size * SLOTS * SLOT_BYTES)
  }
  for (const { segment, slot, bytes, stack, isLate } of operations) {
    const base = BASE + segment * 2 ** 30
    const address = base + slot * SLOT_BYTES
    const frames = stacks[stack] as readonly Shared[]
    const held = live.get(address)
    if (held === undefined) {
      if (!open.has(base)) {
        open.add(base)
        add('segment_alloc', base, SLOTS * SLOT_BYTES, frames)
      }
      live.set(address, { bytes, frames, isPending: false })
      add('alloc', address, bytes, frames)
      continue
    }
    if (!held.isPending) add('free_requested', address, held.bytes, frames)
    if (isLate && !held.isPending) {
      live.set(address, { ...held, isPending: true })
      continue
    }
    live.delete(address)
    add('free_completed', address, held.bytes, frames)
    if ([...live.keys()].some((one) => one >= base && one < base + SLOTS * SLOT_BYTES)) continue
    open.delete(base)
    add('segment_free', base, SLOTS * SLOT_BYTES, frames)
  }
  return { events, allocated, reserved, live, open }
}

/** `cut`: so many of the first events are not in it. */
export function snapshotOf({ events, live, open }: Run, cut = 0): Record<string, unknown> {
  return {
    segments: [...open].sort().map((base) => ({
      device: 0,
      address: base,
      total_size: SLOTS * SLOT_BYTES,
      stream: 0,
      segment_type: 'large',
      segment_pool_id: new Tuple(0, 0),
      is_expandable: false,
      frames: [],
      blocks: Array.from({ length: SLOTS }, (_, slot) => {
        const address = base + slot * SLOT_BYTES
        const held = live.get(address)
        const state = held === undefined ? 'inactive' : held.isPending ? 'active_pending_free' : 'active_allocated'
        return { address, size: SLOT_BYTES, requested_size: held?.bytes ?? 77, state, frames: held?.frames ?? [] }
      }),
    })),
    device_traces: [events.slice(cut).map((event, i) => ({ ...event, stream: 0, time_us: 1_790_000_000_000_000 + cut + i }))],
  }
}

export function analysisOf(value: unknown, options?: WriterOptions): DeviceAnalysis {
  const snapshot = readValue(value, options)
  const [device] = devicesOf(snapshot)
  if (device === undefined) throw new Error('no device')
  return new DeviceAnalysis(snapshot, device)
}
