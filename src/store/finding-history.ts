/** Past findings: each problem once, with its last finding and its end. Bounded, in memory. */
import { lastWords } from '../core/forecast-words.ts'
import type { HubEvent, Sink } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'

const MOST_EPISODES = 2000

export interface FindingQuery {
  readonly from: number
  readonly to: number
  /** GpuInfo.id; null: all GPUs. */
  readonly gpu: string | null
  readonly run: string | null
  readonly limit: number
}

interface Episode {
  /** The last active finding; once it is over, with the time of its end. */
  finding: Finding
  /** Nobody has reported the end: the agent that watched it was stopped. */
  isPresumedOver: boolean
  /** Only its end is known, which says less about what was wrong. */
  readonly isEndAlone: boolean
}

/** A problem that comes back is a new one with a new start. */
export class FindingHistory implements Sink {
  readonly name = 'finding-history'
  readonly #most: number
  readonly #episodes = new Map<string, Episode>()
  /** Those that are not over, by fingerprint. */
  readonly #active = new Map<string, Episode>()

  constructor(most = MOST_EPISODES) {
    this.#most = most
  }

  get size(): number {
    return this.#episodes.size
  }

  accept(event: HubEvent): void {
    if (event.type === 'finding') this.#take(event.finding)
    else if (event.type === 'restart') for (const known of [this.#episodes, this.#active]) known.clear()
  }

  /** Findings of an earlier run, in order of time. Live ones may come meanwhile; `end` joins both. */
  startFilling(): { add(finding: Finding): void; end(): void } {
    const past = new FindingHistory(this.#most)
    return { add: (finding) => past.#take(finding), end: () => this.#merge(past) }
  }

  /** Newest finding first; those that were active at any time between `from` and `to`. */
  query({ from, to, gpu, run, limit }: FindingQuery): readonly Finding[] {
    const found: Finding[] = []
    for (const { finding } of this.#episodes.values()) {
      if (finding.since > to || (finding.state === 'resolved' && finding.at < from)) continue
      if ((gpu === null || finding.subject.gpu === gpu) && (run === null || finding.subject.run === run)) found.push(finding)
    }
    return found.sort((a, b) => b.at - a.at).slice(0, limit)
  }

  #take(finding: Finding): void {
    const known = this.#episodes.get(keyOf(finding))
    const isOpen = known !== undefined && (known.finding.state === 'active' || known.isPresumedOver)
    if (finding.state === 'resolved') {
      if (!known) this.#keep(finding, true)
      else if (isOpen) this.#end(known, finding.at, false, finding)
      return
    }
    // Repeated after a restart, but over since.
    if (known && !isOpen && finding.at <= known.finding.at) return
    const before = this.#active.get(finding.fingerprint)
    if (before && before !== known) this.#end(before, before.finding.at, true)
    if (known) {
      known.finding = finding
      known.isPresumedOver = false
    }
    this.#active.set(finding.fingerprint, known ?? this.#keep(finding, false))
  }

  #keep(finding: Finding, isEndAlone: boolean): Episode {
    if (this.#episodes.size >= this.#most) this.#forgetOne()
    const episode = { finding, isPresumedOver: false, isEndAlone }
    this.#episodes.set(keyOf(finding), episode)
    return episode
  }

  #end(episode: Episode, at: number, isPresumed: boolean, end: Finding | null = null): void {
    episode.finding = { ...episode.finding, state: 'resolved', at, message: lastWords(episode.finding, end) }
    episode.isPresumedOver = isPresumed
    if (this.#active.get(episode.finding.fingerprint) === episode) this.#active.delete(episode.finding.fingerprint)
  }

  /** The one that ended first; if none is over, the oldest. */
  #forgetOne(): void {
    let oldest: [string, Episode] | null = null
    for (const entry of this.#episodes) if (oldest === null || isBefore(entry[1].finding, oldest[1].finding)) oldest = entry
    if (oldest === null) return
    this.#episodes.delete(oldest[0])
    if (this.#active.get(oldest[1].finding.fingerprint) === oldest[1]) this.#active.delete(oldest[1].finding.fingerprint)
  }

  /** What the log has no end of is over, unless the running detectors continue it. */
  #merge(past: FindingHistory): void {
    for (const [key, episode] of past.#episodes) {
      const { finding } = episode
      const known = this.#episodes.get(key)
      if (!known) {
        const kept = this.#keep(finding, episode.isEndAlone)
        if (finding.state === 'active') this.#end(kept, finding.at, true)
        else kept.isPresumedOver = episode.isPresumedOver
      } else if (known.isEndAlone) known.finding = { ...finding, state: 'resolved', at: known.finding.at }
    }
  }
}

function keyOf({ fingerprint, since }: Finding): string {
  // The log has milliseconds.
  return `${Math.floor(since)} ${fingerprint}`
}

function isBefore(a: Finding, b: Finding): boolean {
  if (a.state !== b.state) return a.state === 'resolved'
  return a.at < b.at
}
