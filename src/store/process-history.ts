/** How much GPU memory each process had: bounded, in memory, gone with the agent. */
import type { Dropped, HubEvent, ProcessHistoryAnswer, Sink } from '../core/kinds.ts'
import type { ProcessInfo, ProcessView, Reading } from '../core/model.ts'
import { MINUTE_MS } from './minute-ring.ts'
import { StepRing } from './step-ring.ts'

const FINE_MS = 10_000
const FINE_STEPS = 720
const MOST_PER_GPU = 64
const MOST_IN_ALL = 512
const MOST_POINTS = 1500
const LONGEST_COMMAND = 500
const HOUR_MS = 3_600_000
/** What Date can express. */
const LARGEST_TIME = 8.64e15
/** A process start is based on the boot time, which is known to the second. */
const START_TOLERANCE_MS = 2000
/** A process with an unknown start that was away for this long counts as another one. */
const AWAY_MS = 60_000

interface Track {
  readonly pid: number
  startedAt: Reading
  user: string | null
  name: string | null
  command: string | null
  firstAt: number
  lastAt: number
  /** Minute in which its names were last checked. */
  namedMinute: number
  readonly fine: StepRing
  readonly minutes: StepRing
}

interface GpuTracks {
  lastAt: number
  readonly current: Map<number, Track>
  /** Current ones too, in order of appearance. */
  readonly all: Set<Track>
}

export class ProcessHistory implements Sink {
  readonly name = 'process-history'
  readonly #hours: number
  readonly #gpus = new Map<string, GpuTracks>()
  #count = 0
  #dropped = 0
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(settings: { readonly 'history.hours': number }) {
    this.#hours = settings['history.hours']
  }

  get bytes(): number {
    let bytes = 0
    for (const { all } of this.#gpus.values()) for (const { fine, minutes } of all) bytes += fine.bytes + minutes.bytes
    return bytes
  }

  accept(event: HubEvent): void {
    if (event.type === 'restart') {
      this.#gpus.clear()
      this.#count = 0
    }
    if (event.type !== 'tick' || !(Math.abs(event.tick.at) <= LARGEST_TIME)) return
    const { at, gpus, processes } = event.tick
    for (const { gpu } of gpus) {
      const known = this.#gpus.get(gpu)
      if (known) known.lastAt = at
    }
    for (const process of processes) if (process.memoryUsedBytes !== null) this.#take(process, process.memoryUsedBytes, at)
    if (Math.abs(at - this.#sweptAt) >= MINUTE_MS) this.#forgetOld(at)
  }

  /** In steps of ten seconds for the last two hours, else of a minute or of as many as are needed for MOST_POINTS. */
  query({ gpu, from, to }: { readonly gpu: string; readonly from: number; readonly to: number }): ProcessHistoryAnswer {
    const tracks = [...(this.#gpus.get(gpu)?.all ?? [])]
    const newest = tracks.reduce((latest, track) => Math.max(latest, track.lastAt), this.#gpus.get(gpu)?.lastAt ?? Number.NEGATIVE_INFINITY)
    const start = Math.max(from, newest - this.#hours * HOUR_MS, Math.min(...tracks.map((track) => track.firstAt)))
    const end = Math.min(to, newest)
    const isFine = Math.floor(start / FINE_MS) > Math.floor(newest / FINE_MS) - FINE_STEPS
    const unitMs = isFine ? FINE_MS : MINUTE_MS
    if (!(start <= end)) return { gpu, stepMs: unitMs, at: [], processes: [] }
    const units = Math.max(1, Math.ceil((end - start) / unitMs / MOST_POINTS))
    const stepMs = units * unitMs
    const first = Math.floor(start / stepMs)
    const at = Array.from({ length: Math.floor(end / stepMs) - first + 1 }, (_, index) => (first + index) * stepMs)
    const columns = tracks.flatMap((track) => {
      const ring = isFine ? track.fine : track.minutes
      const memoryUsedBytes = at.map((_, index) => largest(ring, (first + index) * units, units))
      if (memoryUsedBytes.every((value) => value === null)) return []
      const { pid, startedAt, user, name, command } = track
      return [{ pid, startedAt, user, name, command, memoryUsedBytes }]
    })
    return { gpu, stepMs, at, processes: columns }
  }

  dropped(): Dropped {
    const reason = `more than ${MOST_PER_GPU} processes on a GPU, or ${MOST_IN_ALL} in all, at the same time`
    return { count: this.#dropped, reason: this.#dropped === 0 ? null : reason }
  }

  #take({ gpu, pid, info }: ProcessView, memoryUsedBytes: number, at: number): void {
    let tracks = this.#gpus.get(gpu)
    if (!tracks) {
      tracks = { lastAt: at, current: new Map(), all: new Set() }
      this.#gpus.set(gpu, tracks)
    }
    const known = tracks.current.get(pid)
    const track = known && isSame(known, info, at) ? known : this.#begin(tracks, pid, at)
    if (!track) {
      this.#dropped++
      return
    }
    const minute = Math.floor(at / MINUTE_MS)
    const isNews = track.namedMinute !== minute || (info?.startedAt ?? track.startedAt) !== track.startedAt
    if (info && isNews) nameAfter(track, info, minute)
    // Only when the clock was set back.
    if (at < track.firstAt) track.firstAt = at
    track.lastAt = at
    track.fine.put(Math.floor(at / FINE_MS), memoryUsedBytes)
    track.minutes.put(minute, memoryUsedBytes)
  }

  /** null: no room, and no known process has ended. */
  #begin(tracks: GpuTracks, pid: number, at: number): Track | null {
    tracks.current.delete(pid)
    if (tracks.all.size >= MOST_PER_GPU && !this.#forgetEnded([tracks])) return null
    if (this.#count >= MOST_IN_ALL && !this.#forgetEnded([...this.#gpus.values()])) return null
    const rings = { fine: new StepRing(FINE_STEPS), minutes: new StepRing(Math.ceil(this.#hours * 60)) }
    const track: Track = { pid, startedAt: null, user: null, name: null, command: null, firstAt: at, lastAt: at, namedMinute: -1, ...rings }
    tracks.current.set(pid, track)
    tracks.all.add(track)
    this.#count++
    return track
  }

  #forget(tracks: GpuTracks, track: Track): void {
    if (tracks.current.get(track.pid) === track) tracks.current.delete(track.pid)
    if (tracks.all.delete(track)) this.#count--
  }

  /** The one that ended first, if any has. */
  #forgetEnded(candidates: readonly GpuTracks[]): boolean {
    let oldest: { readonly tracks: GpuTracks; readonly track: Track } | null = null
    for (const tracks of candidates)
      for (const track of tracks.all) {
        const hasEnded = track.lastAt !== tracks.lastAt || tracks.current.get(track.pid) !== track
        if (hasEnded && (oldest === null || track.lastAt < oldest.track.lastAt)) oldest = { tracks, track }
      }
    if (oldest) this.#forget(oldest.tracks, oldest.track)
    return oldest !== null
  }

  #forgetOld(at: number): void {
    this.#sweptAt = at
    for (const [gpu, tracks] of this.#gpus) {
      for (const track of tracks.all) if (at - track.lastAt > this.#hours * HOUR_MS) this.#forget(tracks, track)
      if (tracks.all.size === 0) this.#gpus.delete(gpu)
    }
  }
}

/** Its details become known a moment after the driver has named its PID. */
function isSame(track: Track, info: ProcessInfo | null, at: number): boolean {
  const startedAt = info?.startedAt ?? null
  if (startedAt !== null && track.startedAt !== null) return Math.abs(startedAt - track.startedAt) <= START_TOLERANCE_MS
  return Math.abs(at - track.lastAt) <= AWAY_MS
}

function nameAfter(track: Track, info: ProcessInfo, minute: number): void {
  track.startedAt = info.startedAt ?? track.startedAt
  track.user = info.user
  track.name = info.name
  track.command = info.command === null ? null : info.command.join(' ').slice(0, LONGEST_COMMAND)
  track.namedMinute = minute
}

function largest(ring: StepRing, first: number, count: number): Reading {
  let most: Reading = null
  for (let step = first; step < first + count; step++) {
    const value = ring.get(step)
    if (value !== null && (most === null || value > most)) most = value
  }
  return most
}
