/** Recordings of the lines that keep memory: asked for in the answers to steps, and kept with their run. */
import type { Log } from '../core/kinds.ts'
import { type LineRecording, recordingText } from '../core/memory/line-recording.ts'
import type { Finding } from '../core/model.ts'
import type { Progress } from './progress.ts'
import { type RecordingRequest, RecordingRequests, type RecordOrder } from './recording-requests.ts'
import type { RunRecord } from './run-record.ts'

export interface RecordingsOptions {
  /** Whether runs that leak are asked without anybody's request. */
  readonly asksByItself: boolean
  readonly now: () => number
  readonly log: Log
  readonly run: (id: string) => RunRecord | undefined
  readonly change: (id: string, make: (known: RunRecord | undefined) => RunRecord | null) => Promise<RunRecord | null>
}

export type AskRefusal = 'unknown' | 'ended' | 'cannot' | 'busy'

const MOST_KEPT = 8

export class Recordings {
  readonly #options: RecordingsOptions
  readonly #requests: RecordingRequests

  constructor(options: RecordingsOptions) {
    this.#options = options
    this.#requests = new RecordingRequests(options.now)
  }

  noteFinding(finding: Finding): void {
    const { asksByItself, log, run } = this.#options
    const known = finding.subject.run === null ? undefined : run(finding.subject.run)
    if (!asksByItself || !known || known.endedAt !== null || known.canRecord !== true) return
    const request = this.#requests.afterFinding(finding)
    if (request)
      log.info(
        { run: request.run, rank: request.rank, recording: request.id, trigger: request.trigger },
        'a run is asked to record its memory',
      )
  }

  ask(id: string, asked: Pick<RecordingRequest, 'rank' | 'kind' | 'steps'>): RecordingRequest | AskRefusal {
    const run = this.#options.run(id)
    if (!run) return 'unknown'
    if (run.endedAt !== null) return 'ended'
    if (run.canRecord !== true) return 'cannot'
    if (this.#requests.of(id).length > 0) return 'busy'
    return this.#requests.ask({ ...asked, run: id, trigger: 'hand' })
  }

  /** What to answer to steps of this rank. */
  orderFor(id: string, rank: number, progress: Progress): RecordOrder | null {
    return this.#requests.orderFor(id, rank, progress.ranks.get(rank)?.recentStepSeconds ?? null)
  }

  waiting(id: string): readonly RecordingRequest[] {
    return this.#requests.of(id)
  }

  drop(id: string): void {
    this.#requests.drop(id)
  }

  /** False: no such run. */
  async keep(id: string, recording: LineRecording): Promise<boolean> {
    const { log, now, change } = this.#options
    const isKept = await change(id, (known) => {
      if (!known) return null
      const others = known.recordings.filter((one) => one.id !== recording.id)
      return { ...known, recordings: [recording, ...others].slice(0, MOST_KEPT), updatedAt: now() }
    })
    if (isKept === null) return false
    this.#requests.done(id, recording)
    log.info({ run: id, rank: recording.rank, recording: recording.id }, recordingText(recording).join(' '))
    return true
  }
}
