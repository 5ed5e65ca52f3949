/** The recording that the agent plays: reads it ahead once for its time line, and passes on who pauses or moves it. */
import type { HubEvent, Log, Sink } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import type { PlaybackCommand, PlaybackMark, PlaybackState } from '../core/playback.ts'
import type { Recording } from '../core/recording/recording.ts'
import { detectors } from '../detectors/index.ts'
import { detectorOptions } from '../detectors/settings.ts'
import type { ReplayControl, ReplayView } from '../server/replay-route.ts'
import { recordedRuns } from '../training/run-files.ts'
import type { RunRecord } from '../training/run-record.ts'
import type { ConfigValues } from './config.ts'
import { detectRecording, openForReading } from './detect-recording.ts'

export interface ReplayOptions {
  readonly path: string
  readonly values: ConfigValues
  /** Everything that is played is written to a log: going back would write it twice. */
  readonly isLogged: boolean
  readonly steer: (command: PlaybackCommand) => boolean
  readonly log: Log
  readonly signal: AbortSignal
}

const MOST_MARKS = 500
/** Reading ahead takes turns with what the agent has to do. */
const SLICE_MS = 20

export class Replay implements Sink, ReplayControl {
  readonly name = 'replay'
  readonly #options: ReplayOptions
  readonly #marks = new Map<string, PlaybackMark>()
  #playback: PlaybackState = { state: 'playing', at: null, speed: 1, jumps: 0 }
  #firstAt: number | null = null
  #lastAt: number | null = null

  constructor(options: ReplayOptions) {
    this.#options = options
  }

  accept(event: HubEvent): void {
    if (event.type === 'playback') this.#playback = event.playback
    else if (event.type === 'tick') {
      const { at } = event.tick
      this.#playback = { ...this.#playback, at }
      this.#firstAt ??= at
    }
  }

  view(): ReplayView {
    const lastAt = this.#lastAt
    // The end of a run may be reported just after the last sample.
    const marks = [...this.#marks.values()].map((mark) => ({ ...mark, at: Math.min(mark.at, lastAt ?? mark.at) }))
    marks.sort((a, b) => a.at - b.at)
    return { ...this.#playback, firstAt: this.#firstAt, lastAt, marks, forwardOnly: this.#forwardOnly() }
  }

  steer({ at: asked, ...rest }: PlaybackCommand): string | null {
    const { state, at } = this.#playback
    const target = asked === undefined ? undefined : Math.min(Math.max(asked, this.#firstAt ?? asked), this.#lastAt ?? asked)
    const isBack = target === undefined ? rest.playing === true && state === 'ended' : at !== null && target < at
    const why = isBack ? this.#forwardOnly() : null
    if (why !== null) return why
    return this.#options.steer({ ...rest, at: target }) ? null : 'The recording is not being read at the moment. Try again in a second.'
  }

  /** Finds the end of the recording, and what the detectors say of it on the way. */
  async readAhead(): Promise<void> {
    const { path, values, signal, log } = this.#options
    try {
      const recording = await openForReading(path)
      const runs = await recordedRuns(path)
      const { stats } = await detectRecording(inTurns(recording, signal), {
        engine: { kinds: detectors, options: detectorOptions(values), disabled: values['detectors.disabled'], hostname: 'recording' },
        until: null,
        durationMs: null,
        devices: values.devices === null ? null : new Set(values.devices),
        runs,
        onFindings: (findings) => {
          for (const finding of findings) this.#mark(finding)
        },
      })
      if (signal.aborted) return
      this.#firstAt = stats.firstAt
      for (const run of runs) this.#markEnd(run, stats.firstAt ?? 0, stats.lastAt ?? 0)
      this.#lastAt = stats.lastAt
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the recording could not be read ahead: its time line has no end and no marks')
    }
  }

  #mark({ fingerprint, since, at, severity, detector, message, subject, state }: Finding): void {
    const key = `${fingerprint} ${Math.floor(since)}`
    const known = this.#marks.get(key)
    if (state === 'resolved' || (known === undefined && this.#marks.size >= MOST_MARKS)) return
    // The first moment counts, and the last words.
    this.#marks.set(key, { at: known?.at ?? at, severity, kind: detector, message, run: subject.run })
  }

  /** The end of a run that died is the detector's mark. */
  #markEnd({ id, name, endedAt, outcome }: RunRecord, firstAt: number, lastAt: number): void {
    if (endedAt === null || outcome !== 'success' || endedAt < firstAt || endedAt > lastAt || this.#marks.size >= MOST_MARKS) return
    this.#marks.set(`end ${id}`, { at: endedAt, severity: 'info', kind: 'run_ended', message: `${name} finished`, run: id })
  }

  #forwardOnly(): string | null {
    const { isLogged, values } = this.#options
    if (isLogged)
      return 'This replay is written to a log, which cannot be written twice: it only goes forward. Leave out --log-dir to go back.'
    if (values['alerts.simulated'])
      return 'Alerts of this replay are delivered (alerts.simulated), and would be sent twice: it only goes forward.'
    return null
  }
}

/** The recording, with pauses for the rest of the process. */
function inTurns(recording: Recording, signal: AbortSignal): Recording {
  return {
    path: recording.path,
    stats: () => recording.stats(),
    close: () => recording.close(),
    async *[Symbol.asyncIterator]() {
      let since = performance.now()
      for await (const item of recording) {
        if (signal.aborted) return
        yield item
        if (performance.now() - since < SLICE_MS) continue
        await new Promise((resolve) => setTimeout(resolve, SLICE_MS))
        since = performance.now()
      }
    },
  }
}
