/** What was seen since the start, to tell a problem that lasted over a restart from one that was gone and came back. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { HubEvent } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import type { AlertRecord } from './alert-record.ts'

/** Samples, or steps with a finite loss: fewer say little. */
const ENOUGH = 20
const MOST_SUBJECTS = 2000
const HOST = 'host'

interface Seen {
  readonly firstAt: number
  /** When the first one arrived, in observed time. */
  readonly firstMs: number
  count: number
}

export class SeenSinceStart {
  readonly #seen = new BoundedMap<string, Seen>(MOST_SUBJECTS)

  /** A GPU counts while it can be read, a run while its loss is finite. */
  accept(event: HubEvent, ms: number): void {
    if (event.type === 'tick') {
      const { at, source, gpus } = event.tick
      this.#note(HOST, at, ms)
      this.#note(`source ${source}`, at, ms)
      for (const { gpu, state } of gpus) if (state === 'ok') this.#note(`gpu ${gpu}`, at, ms)
    } else if (event.type === 'steps')
      for (const { run, at, loss } of event.steps) if (loss !== null && Number.isFinite(loss)) this.#note(`run ${run}`, at, ms)
  }

  /**
   * The end of an alert from before the restart, where this finding shows that it came back: its subject was seen without it for as long as its
   * detector needs to find a lasting problem again. null: it may have lasted.
   */
  endOf(record: AlertRecord | undefined, finding: Finding, nowMs: number, findsAgainMs: number | null): Finding | null {
    if (!record?.unconfirmed || finding.state !== 'active' || findsAgainMs === null) return null
    const seen = this.#seen.get(subjectKey(finding))
    const beganMs = nowMs - Math.max(0, finding.at - finding.since)
    if (seen === undefined || seen.count < ENOUGH || beganMs - seen.firstMs < findsAgainMs) return null
    const { finding: before } = record
    const message = `Gone after gpuwarden was restarted: ${before.message}`
    return { ...before, state: 'resolved', at: Math.max(seen.firstAt, before.at), message }
  }

  #note(key: string, at: number, ms: number): void {
    const seen = this.#seen.get(key)
    if (seen) seen.count++
    else this.#seen.set(key, { firstAt: at, firstMs: ms, count: 1 })
  }
}

function subjectKey({ subject, evidence }: Finding): string {
  if (subject.gpu !== null) return `gpu ${subject.gpu}`
  if (subject.run !== null) return `run ${subject.run}`
  return typeof evidence.source === 'string' ? `source ${evidence.source}` : HOST
}
