/** From samples to rows: a few additions per sample. What happened between two samples is counted as the later one says. */
import { CLOCK_REASON } from '../core/gpu-words.ts'
import type { HubEvent, Tick } from '../core/kinds.ts'
import type { GpuInfo, GpuSample, ProcessInfo, ProcessView, Reading, Run, TrainingStep } from '../core/model.ts'
import { phasesBy } from '../core/step-phases.ts'
import type { Book, Card, OpenRow } from './book.ts'
import { migShare } from './mig-share.ts'
import { addSums, hourOf, NOBODY, type Sums, UNKNOWN, zeroSums } from './row.ts'
import { RunOwners } from './run-owners.ts'
import { holders, type Share, sharesOf } from './shares.ts'

/** Rests shorter than this are part of the work. */
const IDLE_AFTER_MS = 60_000
/** Who a process is becomes known a moment after the driver has named it. */
const NAMED_WITHIN_MS = 15_000
/** Process start times are based on the boot time, which is known to the second. */
const START_TOLERANCE_MS = 2000
const LONGEST_NAME = 200
const { hardwareSlowdown, softwareThermal, hardwareThermal, hardwarePowerBrake } = CLOCK_REASON
const THROTTLED = hardwareSlowdown | softwareThermal | hardwareThermal | hardwarePowerBrake
const NO_PROCESSES: readonly ProcessView[] = []

/** One process on one GPU. */
interface Track {
  readonly firstAt: number
  startedAt: Reading
  info: ProcessInfo | null
  seenAt: number
  idleFrom: number | null
  user: string | null
  job: string | null
  run: Run | null
  runsVersion: number
  row: OpenRow | null
  generation: number
  /** Counted before its owner is known. */
  pending: { readonly hour: number; readonly sums: Sums } | null
}

interface Watched {
  info: GpuInfo
  card: Card
  /** 1: a whole card. */
  weight: number
  parent: Watched | null
  hasParts: boolean
  lastAt: number
  lastPowerWatts: Reading
  lastReasons: Reading
  lastEnergyJoules: Reading
  readonly tracks: Map<number, Track>
  nobody: OpenRow | null
  generation: number
}

export class Counter {
  readonly #book: Book
  readonly #longestMs: number
  readonly #gpus = new Map<string, Watched>()
  readonly #runs = new RunOwners()

  /** `longestMs`: two samples further apart than this have a gap between them, in which nobody knows what happened. */
  constructor(book: Book, longestMs: number) {
    this.#book = book
    this.#longestMs = longestMs
  }

  accept(event: HubEvent): void {
    if (event.type === 'tick') this.#tick(event.tick)
    else if (event.type === 'devices') this.#devices(event.devices)
    else if (event.type === 'run') this.#run(event.run)
    else if (event.type === 'steps') this.#steps(event.steps)
  }

  /** Everything counted is in the rows, also of processes whose owner was not found in time. */
  settle(): void {
    for (const gpu of this.#gpus.values()) for (const track of gpu.tracks.values()) this.#settle(gpu, track)
  }

  #devices(devices: readonly GpuInfo[]): void {
    for (const info of devices) {
      const { id, label, name } = info
      const card = { id, label, name, simulated: info.provenance === 'simulated' }
      const known = this.#gpus.get(id)
      if (known) Object.assign(known, { info, card, weight: 1, parent: null, hasParts: false, generation: -1 })
      else {
        const none = { lastPowerWatts: null, lastReasons: null, lastEnergyJoules: null, nobody: null, parent: null }
        this.#gpus.set(id, { info, card, weight: 1, hasParts: false, lastAt: Number.NaN, tracks: new Map(), generation: -1, ...none })
      }
    }
    const listed = new Set(devices.map(({ id }) => id))
    for (const [id, gpu] of this.#gpus) {
      if (listed.has(id)) continue
      for (const track of gpu.tracks.values()) this.#settle(gpu, track)
      this.#gpus.delete(id)
    }
    for (const gpu of this.#gpus.values()) {
      const parent = gpu.info.mig === null ? undefined : this.#gpus.get(gpu.info.mig.parentId)
      if (!parent) continue
      gpu.parent = parent
      gpu.weight = migShare(gpu.info, parent.info)
      parent.hasParts = true
      parent.weight = Math.max(0, parent.weight - gpu.weight)
    }
  }

  #tick({ gpus, processes }: Tick): void {
    let from = 0
    for (const sample of gpus) {
      // Processes come in the order of their GPUs.
      let to = from
      while (to < processes.length && processes[to]?.gpu === sample.gpu) to++
      const gpu = this.#gpus.get(sample.gpu)
      if (gpu) this.#sample(gpu, sample, to === from ? NO_PROCESSES : processes.slice(from, to))
      from = to
    }
  }

  #sample(gpu: Watched, sample: GpuSample, listed: readonly ProcessView[]): void {
    const { at, state } = sample
    const spanMs = at - gpu.lastAt
    const energyBefore = gpu.lastEnergyJoules
    gpu.lastAt = at
    gpu.lastPowerWatts = sample.powerWatts
    gpu.lastReasons = sample.clockEventReasons
    gpu.lastEnergyJoules = sample.energyJoules
    const isWatched = state === 'ok' || state === 'suspended' || state === 'reset_required'
    if (!isWatched || !(spanMs > 0 && spanMs <= this.#longestMs)) return
    const busy = sample.utilizationRatio ?? sample.smActiveRatio
    const shares = gpu.hasParts ? [] : sharesOf(holders(listed), sample, busy)
    const joules = energyOf(gpu, sample, energyBefore, spanMs)
    const hour = hourOf(at)
    const later = Math.min(spanMs, at - hour)
    if (later < spanMs) this.#count(gpu, sample, shares, hourOf(at - spanMs), spanMs - later, spanMs, busy, joules)
    if (later > 0) this.#count(gpu, sample, shares, hour, later, spanMs, busy, joules)
    if (gpu.tracks.size > shares.length)
      for (const [pid, track] of gpu.tracks)
        if (track.seenAt !== at) {
          this.#settle(gpu, track)
          gpu.tracks.delete(pid)
        }
  }

  /** A part of a span: `ms` of `spanMs`, within one hour. */
  #count(
    gpu: Watched,
    sample: GpuSample,
    shares: readonly Share[],
    hour: number,
    ms: number,
    spanMs: number,
    busy: Reading,
    spanJoules: Reading,
  ): void {
    const seconds = (ms / 1000) * gpu.weight
    const joules = spanJoules === null ? null : (spanJoules * ms) / spanMs
    const sm = sample.smActiveRatio
    const isThrottled = busy !== 0 && ((sample.clockEventReasons ?? gpu.parent?.lastReasons ?? 0) & THROTTLED) !== 0
    let memory = 0
    for (const share of shares) {
      const track = this.#track(gpu, share, sample.at, spanMs)
      const to = this.#sumsOf(gpu, track, share.process, hour, sample.at)
      memory += share.memoryBytes
      const own = seconds * share.held
      to.memoryByteSeconds += (share.memoryBytes * ms) / 1000
      add(to, own, seconds * share.activity, busy, sm, joules === null ? null : joules * share.activity)
      if (track.idleFrom !== null && sample.at - spanMs - track.idleFrom >= IDLE_AFTER_MS) to.idleSeconds += own
      if (isThrottled) to.throttledSeconds += own
    }
    const rest = gpu.hasParts ? 0 : Math.max(0, (sample.memoryUsedBytes ?? 0) - memory)
    if (shares.length > 0 && rest === 0) return
    const nobody = this.#nobody(gpu, sample, hour, busy)
    nobody.memoryByteSeconds += (rest * ms) / 1000
    if (shares.length === 0) add(nobody, seconds, seconds, busy, sm, joules)
  }

  #track(gpu: Watched, { process, work }: Share, at: number, spanMs: number): Track {
    const { pid, info } = process
    let track = gpu.tracks.get(pid)
    if (track && (isReused(track, info) || track.seenAt < at - spanMs)) {
      this.#settle(gpu, track)
      track = undefined
    }
    if (!track) {
      track = {
        ...{ firstAt: at, startedAt: null, info: null, seenAt: at, idleFrom: null, user: null, job: null, run: null, runsVersion: -1 },
        ...{ row: null, generation: -1, pending: null },
      }
      gpu.tracks.set(pid, track)
    }
    // Unknown is not idle: only a reading of zero counts.
    if (work !== 0) track.idleFrom = null
    else track.idleFrom ??= at - spanMs
    track.seenAt = at
    return track
  }

  /** Where the use of a process is added: its row, or aside while nobody knows whose it is. */
  #sumsOf(gpu: Watched, track: Track, process: ProcessView, hour: number, at: number): Sums {
    const { info } = process
    if (info !== null && info !== track.info) {
      if (!isSameOwner(info, track.info)) this.#name(track, info)
      track.info = info
    }
    if (track.user === null) {
      if (at - track.firstAt < NAMED_WITHIN_MS) {
        if (track.pending && track.pending.hour !== hour) this.#settle(gpu, track)
        track.pending ??= { hour, sums: zeroSums() }
        return track.pending.sums
      }
      track.user = UNKNOWN
    }
    if (track.runsVersion !== this.#runs.version) {
      track.runsVersion = this.#runs.version
      const run = this.#runs.find(process, gpu.info, track.user)
      if (run?.id !== track.run?.id) track.row = null
      track.run = run
    }
    if (track.pending) this.#settle(gpu, track)
    return this.#row(gpu, track, hour)
  }

  #name(track: Track, info: ProcessInfo): void {
    track.startedAt = info.startedAt ?? track.startedAt
    const user = info.user ?? (info.uid === null ? null : `uid ${info.uid}`)
    if (user === null) return
    track.user = user.slice(0, LONGEST_NAME)
    track.job = jobOf(info)
    track.row = null
    track.runsVersion = -1
  }

  #row(gpu: Watched, track: Track, hour: number): OpenRow {
    const { row, generation, user, job, run } = track
    if (row?.hour === hour && generation === this.#book.generation) return row
    const found = this.#book.row(hour, gpu.card, user ?? UNKNOWN, job, run?.id ?? null, run?.name.slice(0, LONGEST_NAME) ?? null)
    track.row = found
    track.generation = this.#book.generation
    return found
  }

  #settle(gpu: Watched, track: Track): void {
    const { pending } = track
    if (!pending) return
    track.pending = null
    addSums(this.#row(gpu, track, pending.hour), pending.sums)
    track.row = null
  }

  /** Where no list of processes can be had, a card in use is somebody's. */
  #nobody(gpu: Watched, sample: GpuSample, hour: number, busy: Reading): OpenRow {
    const isHidden = sample.processes === null && sample.state === 'ok' && !gpu.hasParts
    const isUsed = isHidden && ((busy ?? 0) > 0 || (sample.memoryUsedBytes ?? 0) >= 1024 ** 3)
    const user = isUsed ? UNKNOWN : NOBODY
    const known = gpu.nobody
    if (known?.hour === hour && known.user === user && gpu.generation === this.#book.generation) return known
    gpu.generation = this.#book.generation
    gpu.nobody = this.#book.row(hour, gpu.card, user, null, null, null)
    return gpu.nobody
  }

  #run(run: Run): void {
    this.#runs.accept(run)
    // An end that is repeated finds nothing more to lose.
    if (run.endedAt === null) return
    const { id, outcome, ending } = run
    const hour = hourOf(run.endedAt)
    // A row of an hour long gone would not be written again.
    const at = this.#book.hours.has(hour) ? hour : Math.max(hour, ...this.#book.hours.keys())
    if (outcome === 'oom') this.#book.lose(id, at, 'lostOomSeconds')
    else if (outcome === 'failed' || outcome === 'nan' || (outcome === 'killed' && ending?.isAsked !== true))
      this.#book.lose(id, at, 'lostDeadSeconds')
    else this.#book.settle(id)
  }

  #steps(steps: readonly TrainingStep[]): void {
    for (const { run, phaseSeconds } of steps)
      if (phaseSeconds !== null && (phasesBy('host', phaseSeconds)?.checkpoint ?? 0) > 0) this.#book.settle(run)
  }
}

function add(to: Sums, held: number, done: number, busy: Reading, sm: Reading, joules: Reading): void {
  to.gpuSeconds += held
  if (busy !== null) {
    to.busySeconds += busy * done
    to.busyKnownSeconds += held
  }
  if (sm !== null) {
    to.smSeconds += sm * done
    to.smKnownSeconds += held
  }
  if (joules !== null) {
    to.energyJoules += joules
    to.energyKnownSeconds += held
  }
}

/** From the power now; where a card does not tell it, from its counter. An instance has its share of what its card draws. */
function energyOf(gpu: Watched, sample: GpuSample, before: Reading, spanMs: number): Reading {
  const whole = sample.powerWatts ?? gpu.parent?.lastPowerWatts ?? null
  if (whole !== null) return ((whole * spanMs) / 1000) * (sample.powerWatts !== null && !gpu.hasParts ? 1 : gpu.weight)
  if (sample.energyJoules === null || before === null || sample.energyJoules < before) return null
  return (sample.energyJoules - before) * (gpu.hasParts ? gpu.weight : 1)
}

function isReused(track: Track, info: ProcessInfo | null): boolean {
  const startedAt = info?.startedAt ?? null
  return startedAt !== null && track.startedAt !== null && Math.abs(startedAt - track.startedAt) > START_TOLERANCE_MS
}

function isSameOwner(info: ProcessInfo, before: ProcessInfo | null): boolean {
  if (before === null) return false
  const { user, uid, slurmJob, pod, container, startedAt } = before
  const isSameJob = info.slurmJob === slurmJob && info.pod === pod && info.container === container
  return info.user === user && info.uid === uid && isSameJob && info.startedAt === startedAt
}

function jobOf({ slurmJob, pod, container }: ProcessInfo): string | null {
  const job = slurmJob !== null ? `slurm:${slurmJob}` : pod !== null ? `pod:${pod}` : container
  return job === null ? null : job.slice(0, LONGEST_NAME)
}
