/** Keeps sources alive. All share one sampler process; one that hangs or crashes gets its own, restarted with growing pauses. */
import { formatDuration } from '../core/format.ts'
import type { SourceHealth, SourceState } from '../core/model.ts'
import type { PlaybackCommand } from '../core/playback.ts'
import type { DriverFaultKind, RunProcessRef } from '../core/source-contract.ts'
import { type FromSampler, type ProcessUsage, revived } from './messages.ts'
import { failureInWords, type SamplerFailure, SamplerProcess, type SlowStart } from './sampler-process.ts'
import {
  healthOf,
  moveTimes,
  newRecord,
  noteTick,
  type Opening,
  openingOf,
  type SourceRecord,
  takeOut,
  totalUsage,
} from './source-record.ts'
import type { SupervisorOptions } from './supervisor-options.ts'

/** Processes that the kernel has not let go of yet: starting more of them would only pile up. */
const MOST_UNDEAD = 2
/** A driver that refuses is asked again at least this often: somebody may be about to load it. */
const LONGEST_REFUSED_MS = 5000
/** A source that ran this long is trusted again. */
const TRUSTED_AFTER_MS = 60_000

export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #records = new Map<string, SourceRecord>()
  readonly #usage = new Map<SamplerProcess, ProcessUsage>()
  readonly #samplers = new Set<SamplerProcess>()
  readonly #undead = new Set<SamplerProcess>()
  #main: SamplerProcess | null = null
  #watched: readonly number[] = []
  #runs: readonly RunProcessRef[] = []
  #intervalMs: number
  #cpuSecondsBefore = 0
  #stopped = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#intervalMs = options.intervalMs
  }

  /** Opens a source in the common process. Resolves when it answered, failed or hung; it is retried only if it is there. */
  open(source: string): Promise<Opening> {
    return new Promise((resolve) => {
      const record = this.#record(source)
      record.answer = resolve
      this.#main ??= this.#startSampler()
      this.#openIn(this.#main, record)
    })
  }

  health(): readonly SourceHealth[] {
    const { deadlineMs } = this.#options
    return [...this.#records.values()].map((record) =>
      healthOf(record, deadlineMs, record.sampler ? this.#usage.get(record.sampler) : undefined),
    )
  }

  /** Of the sampler processes together, ended ones included. */
  usage(): ProcessUsage {
    return totalUsage(this.#usage.values(), this.#cpuSecondsBefore)
  }

  watch(pids: readonly number[]): void {
    this.#watched = pids
    this.#tellWatched()
  }

  /** The processes of runs, whose memory is followed. */
  watchRuns(runs: readonly RunProcessRef[]): void {
    if (
      runs.length === this.#runs.length &&
      runs.every(({ pid, run }, index) => pid === this.#runs[index]?.pid && run === this.#runs[index]?.run)
    )
      return
    this.#runs = runs
    this.#tellWatched()
  }

  #tellWatched(): void {
    for (const sampler of this.#samplers) if (sampler.sources.includes('host')) sampler.watch(this.#watched, this.#runs)
  }

  /** False: this source is not being read. */
  steer(source: string, command: PlaybackCommand): boolean {
    const sampler = this.#records.get(source)?.sampler
    sampler?.steer(source, command)
    return sampler !== undefined && sampler !== null
  }

  /** How often sources are read from now on; one that allows no less keeps its shortest. */
  pace(intervalMs: number): void {
    if (this.#stopped || intervalMs === this.#intervalMs) return
    this.#intervalMs = intervalMs
    for (const sampler of this.#samplers) sampler.pace(intervalMs)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    for (const record of this.#records.values()) if (record.timer) clearTimeout(record.timer)
    await Promise.all([...this.#samplers].map((sampler) => sampler.stop()))
  }

  #record(source: string): SourceRecord {
    const known = this.#records.get(source)
    if (known) return known
    const record = newRecord(source, this.#intervalMs, this.#options.backoffMs.first, this.#options.now())
    this.#records.set(source, record)
    return record
  }

  #startSampler(): SamplerProcess {
    const { entry, root, env, deadlineMs, openDeadlineMs, slowStartMs, options } = this.#options
    const sampler = new SamplerProcess({
      entry,
      env,
      deadlineMs,
      openDeadlineMs,
      slowStartMs,
      start: { type: 'start', root, intervalMs: this.#intervalMs, beatMs: Math.max(20, Math.min(1000, deadlineMs / 4)), options },
      onMessage: (message, from) => this.#hear(message, from),
      onFailure: (failure, from) => this.#samplerFailed(failure, from),
      onSlowStart: (slow, from) => this.#startsSlowly(slow, from),
      onExit: (from) => this.#undead.delete(from),
    })
    this.#samplers.add(sampler)
    return sampler
  }

  #openIn(sampler: SamplerProcess, record: SourceRecord): void {
    record.sampler = sampler
    record.nextStartAt = null
    sampler.open(record.source)
    if (record.source === 'host' && this.#watched.length + this.#runs.length > 0) sampler.watch(this.#watched, this.#runs)
    this.#publishHealth()
  }

  clockSet(byMs: number): void {
    for (const record of this.#records.values()) moveTimes(record, byMs)
    this.#publishHealth()
  }

  #hear(message: FromSampler, sampler: SamplerProcess): void {
    if (message.type === 'beat') {
      this.#usage.set(sampler, message.usage)
      return
    }
    if (message.type === 'log') {
      this.#options.onLog(message.level, message.message, { source: message.source, ...message.detail })
      return
    }
    const record = this.#records.get(message.source)
    if (!record || record.sampler !== sampler) return
    switch (message.type) {
      case 'tick':
        // A jump of the clock moves the times that are known, not this one.
        this.#options.now()
        noteTick(record, message)
        if (message.usage) this.#usage.set(sampler, message.usage)
        this.#recovered(record)
        this.#options.onTick({
          source: record.source,
          provenance: record.provenance,
          at: message.at,
          samples: revived(message.samples),
        })
        break
      case 'devices':
        this.#options.onDevices(record.source, message.devices)
        break
      case 'opened':
        record.provenance = message.provenance
        record.intervalMs = message.intervalMs
        // Its process was replaced: it is read from the beginning again.
        if (record.restarts > 0 && record.provenance === 'replay') this.#options.onRestart?.('replaced')
        record.hasOpened = true
        this.#options.onDevices(record.source, message.devices)
        this.#answer(record, 'opened', null)
        break
      case 'paced':
        record.intervalMs = message.intervalMs
        this.#publishHealth()
        break
      case 'absent':
        this.#release(record)
        // Whoever never had a GPU has nothing to lose.
        if (!record.hasOpened) this.#end(record)
        else this.#retry(record, 'failed', `the ${record.source} driver no longer lists any GPU`)
        this.#answer(record, 'absent', null)
        this.#publishHealth()
        break
      case 'failed':
        this.#release(record)
        this.#retry(record, 'failed', message.message)
        this.#answer(record, message.kind, message.message)
        break
      case 'ended':
        if (!message.stays) this.#release(record)
        this.#setState(record, 'ended', null)
        this.#options.onEnded(record.source)
        break
      case 'playback':
        this.#options.onPlayback?.(message.playback)
        break
      case 'restarted':
        this.#options.onRestart?.('moved')
        break
      case 'begin':
        break
    }
  }

  #answer(record: SourceRecord, how: 'opened' | 'absent' | DriverFaultKind, message: string | null): void {
    record.answer?.(openingOf(record.source, how, message))
    record.answer = null
  }

  #recovered(record: SourceRecord): void {
    if (record.state !== 'ok') {
      record.okSince = this.#options.now()
      this.#setState(record, 'ok', null)
    } else if (record.backoffMs > this.#options.backoffMs.first && this.#options.now() - record.okSince > TRUSTED_AFTER_MS) {
      record.backoffMs = this.#options.backoffMs.first
    }
  }

  #setState(record: SourceRecord, state: SourceState, message: string | null, since = this.#options.now()): void {
    if (record.state !== state) {
      record.state = state
      record.since = since
    }
    record.message = message
    this.#publishHealth()
  }

  #publishHealth(): void {
    if (!this.#stopped) this.#options.onHealth(this.health())
  }

  /** Takes a source out of its process; a process with nothing left to read is ended. */
  #release(record: SourceRecord): void {
    const { sampler } = record
    takeOut(record)
    if (!sampler) return
    sampler.forget(record.source)
    if (sampler.sources.length === 0 && sampler !== this.#main) {
      this.#retire(sampler)
      void sampler.stop()
    }
  }

  #retire(sampler: SamplerProcess): void {
    this.#samplers.delete(sampler)
    this.#cpuSecondsBefore += this.#usage.get(sampler)?.cpuSeconds ?? 0
    this.#usage.delete(sampler)
  }

  #samplerFailed(failure: SamplerFailure, sampler: SamplerProcess): void {
    const sources = [...sampler.sources]
    this.#retire(sampler)
    this.#undead.add(sampler)
    if (sampler === this.#main) this.#main = null
    this.#options.onLog('error', `source ${failure.culprit}: ${failure.detail}; its process is replaced`, {
      source: failure.culprit,
      kind: failure.kind,
    })
    for (const source of sources) {
      const record = this.#records.get(source)
      if (!record) continue
      takeOut(record)
      if (source !== failure.culprit) {
        record.restarts++
        continue
      }
      this.#retry(record, failure.kind, failureInWords(failure), failure.since)
      this.#answer(record, failure.kind, record.message)
    }
    this.#openElsewhere(sources.filter((source) => source !== failure.culprit))
  }

  /** It may take as long as it is allowed to; only nobody waits for it any more. */
  #startsSlowly({ source, silenceMs, isTooSlow }: SlowStart, sampler: SamplerProcess): void {
    const record = this.#records.get(source)
    if (!record || record.sampler !== sampler) return
    const most = formatDuration(this.#options.openDeadlineMs)
    const message = `waiting for the ${source} driver to start: no answer for ${formatDuration(silenceMs)}, up to ${most} are allowed (open_deadline)`
    this.#options.onLog(isTooSlow ? 'warn' : 'info', message, { source })
    if (!isTooSlow) {
      record.message ??= message
      this.#publishHealth()
      return
    }
    this.#setState(record, 'not_responding', message, this.#options.now() - silenceMs)
    this.#answer(record, 'not_responding', message)
    if (sampler === this.#main) this.#main = null
    const others = sampler.sources.filter((one) => one !== source)
    for (const other of others) {
      sampler.close(other)
      sampler.forget(other)
      const waiting = this.#records.get(other)
      if (waiting) takeOut(waiting)
    }
    this.#openElsewhere(others)
  }

  #openElsewhere(sources: readonly string[]): void {
    if (this.#stopped || sources.length === 0) return
    this.#main ??= this.#startSampler()
    for (const source of sources) {
      const record = this.#records.get(source)
      if (record) this.#openIn(this.#main, record)
    }
  }

  /** Tries a source again now: its driver seems to have come or changed. No effect on one that is being read. */
  lookAgain(source: string): void {
    const known = this.#records.get(source)
    if (this.#stopped || known?.sampler || this.#undead.size >= MOST_UNDEAD) return
    const record = known ?? this.#record(source)
    if (record.timer) clearTimeout(record.timer)
    this.#openIn(this.#startSampler(), record)
  }

  /** Opens a source once more, in a process of its own, although it is being read: it may have a new GPU. */
  reopen(source: string): void {
    const record = this.#records.get(source)
    record?.sampler?.close(source)
    if (record) this.#release(record)
    this.lookAgain(source)
  }

  /** Ends a source for good, as if it had never been there. */
  close(source: string): void {
    const record = this.#records.get(source)
    if (!record) return
    if (record.timer) clearTimeout(record.timer)
    record.sampler?.close(source)
    this.#release(record)
    this.#end(record)
    this.#publishHealth()
  }

  /** Whoever heard that it failed hears that this is over. */
  #end(record: SourceRecord): void {
    if (record.state !== 'starting') this.#setState(record, 'ended', null)
    this.#records.delete(record.source)
  }

  #retry(record: SourceRecord, state: SourceState, message: string, since = this.#options.now()): void {
    record.restarts++
    // A driver that refuses costs little to ask again; one that hangs or crashes leaves a process behind each time.
    if (state === 'failed') record.backoffMs = Math.min(record.backoffMs, LONGEST_REFUSED_MS)
    this.#startLater(record)
    record.backoffMs = Math.min(record.backoffMs * 2, this.#options.backoffMs.most)
    this.#setState(record, state, message, since)
  }

  #startLater(record: SourceRecord): void {
    record.nextStartAt = this.#options.now() + record.backoffMs
    record.timer = setTimeout(() => this.#startAgain(record), record.backoffMs).unref()
  }

  #startAgain(record: SourceRecord): void {
    if (this.#stopped) return
    if (this.#undead.size < MOST_UNDEAD) {
      this.#openIn(this.#startSampler(), record)
      return
    }
    record.message = `${record.message ?? ''} (the kernel has not released ${this.#undead.size} earlier processes)`.trim()
    this.#startLater(record)
    this.#publishHealth()
  }
}
