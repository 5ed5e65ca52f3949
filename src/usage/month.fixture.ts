/** A month of a shared server with known truth: who held which card when, and times in which nobody watched. */

import { nothingKnown } from '../core/fields/field.ts'
import { PROCESS_INFO } from '../core/fields/process.ts'
import type { HubEvent } from '../core/kinds.ts'
import { cardWith, processWith, sampleWith } from '../core/model.fixture.ts'
import type { GpuInfo, ProcessInfo, ProcessView } from '../core/model.ts'
import { DAY_MS, HOUR_MS } from './row.ts'

export const MONTH_START = Date.UTC(2026, 9, 1)
export const MONTH_END = MONTH_START + 30 * DAY_MS
const GIB = 1024 ** 3

export interface Booking {
  readonly gpu: string
  readonly user: string
  readonly job: string
  readonly pid: number
  readonly from: number
  readonly to: number
  /** 0: it holds memory and computes nothing. */
  readonly utilization: number
  readonly memoryGib: number
}

export interface Truth {
  gpuHours: number
  busyHours: number
  idleHours: number
  memoryGibHours: number
  energyKwh: number
}

export interface Month {
  readonly gpus: readonly GpuInfo[]
  readonly bookings: readonly Booking[]
  /** From and to. */
  readonly off: readonly (readonly [number, number])[]
}

/** Every card is held one job after the other, with pauses; some only hold memory. */
export function month(seed: number, count: number): Month {
  const random = generator(seed)
  const gpus = Array.from({ length: count }, (_, index) => cardWith(index))
  const bookings: Booking[] = []
  const users = ['ada', 'ben', 'cleo', 'dan']
  let pid = 1000
  for (const { id } of gpus)
    for (let at = MONTH_START + random() * 6 * HOUR_MS; at < MONTH_END; ) {
      const to = Math.min(MONTH_END, at + (0.5 + random() * 20) * HOUR_MS)
      const utilization = random() < 0.25 ? 0 : Math.round(20 + random() * 80) / 100
      const user = users[Math.floor(random() * users.length)] ?? 'ada'
      bookings.push({ gpu: id, user, job: `slurm:${pid}`, pid, from: at, to, utilization, memoryGib: 2 + Math.floor(random() * 70) })
      pid++
      at = to + random() * 8 * HOUR_MS
    }
  const off = [3, 11, 12, 24].map((day): [number, number] => {
    const from = MONTH_START + day * DAY_MS + random() * DAY_MS
    return [from, from + random() * 20 * HOUR_MS]
  })
  return { gpus, bookings, off }
}

export function isOff({ off }: Month, at: number): boolean {
  return off.some(([from, to]) => at >= from && at < to)
}

export function powerOf(utilization: number): number {
  return 70 + 600 * utilization
}

/** By arithmetic, not by samples. */
export function truthOf(all: Month, user: string): Truth {
  const truth = { gpuHours: 0, busyHours: 0, idleHours: 0, memoryGibHours: 0, energyKwh: 0 }
  for (const { user: owner, from, to, utilization, memoryGib } of all.bookings) {
    if (owner !== user) continue
    const hours = watchedHours(all, from, to)
    truth.gpuHours += hours
    truth.busyHours += hours * utilization
    truth.memoryGibHours += hours * memoryGib
    truth.energyKwh += (hours * powerOf(utilization)) / 1000
    if (utilization === 0) truth.idleHours += hours
  }
  return truth
}

export function watchedHours({ off }: Month, from: number, to: number): number {
  const hidden = off.reduce((sum, [begin, end]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, begin)), 0)
  return (to - from - hidden) / HOUR_MS
}

/** What the hub publishes at a moment. */
export function tickAt(gpus: readonly GpuInfo[], current: ReadonlyMap<string, Booking>, at: number): HubEvent {
  const processes: ProcessView[] = []
  const samples = gpus.map(({ id }) => {
    const booking = current.get(id)
    const own = booking ? [processWith(booking.pid, { memoryUsedBytes: booking.memoryGib * GIB })] : []
    for (const process of own) processes.push({ ...process, gpu: id, info: booking ? infoOf(booking) : null })
    const utilizationRatio = booking?.utilization ?? 0
    const memoryUsedBytes = (booking?.memoryGib ?? 0) * GIB
    return sampleWith(id, at, { utilizationRatio, memoryUsedBytes, powerWatts: powerOf(utilizationRatio), processes: own })
  })
  return { type: 'tick', tick: { seq: 0, at, source: 'nvidia', provenance: 'live', gpus: samples, processes, host: null, events: [] } }
}

function infoOf({ pid, user, job, from }: Booking): ProcessInfo {
  return infoWith(pid, { user, uid: 1000, startedAt: from, slurmJob: job.slice('slurm:'.length) })
}

export function infoWith(pid: number, parts: Partial<ProcessInfo> = {}): ProcessInfo {
  return { ...nothingKnown(PROCESS_INFO), pid, command: null, ...parts }
}

/** A small generator with a seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
