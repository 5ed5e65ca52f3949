/** What happens, as lines of gpu_monitor.log: events of the hardware, findings and runs as they begin and end. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { HubEvent, Log, Sink } from '../core/kinds.ts'
import type { Finding, GpuEvent, Provenance, Run, Severity } from '../core/model.ts'

const MOST_RUNS = 1024
const MOST_FINDINGS = 2048

export interface EventLogOptions {
  readonly log: Log
  /** The correlation id that a run was given; null: none. */
  readonly correlationOf: (run: string) => string | null
}

export class EventLog implements Sink {
  readonly name = 'event-log'
  readonly #options: EventLogOptions
  readonly #severities = new BoundedMap<string, Severity>(MOST_FINDINGS)
  readonly #outcomes = new BoundedMap<string, Run['outcome']>(MOST_RUNS)

  constructor(options: EventLogOptions) {
    this.#options = options
  }

  accept(event: HubEvent): void {
    if (event.type === 'finding') this.#finding(event.finding)
    else if (event.type === 'run') this.#run(event.run)
    else if (event.type === 'restart') for (const known of [this.#severities, this.#outcomes]) known.clear()
    else if (event.type === 'tick') for (const one of event.tick.events) this.#event(one, event.tick.provenance)
  }

  #event({ event, gpu, code, message, origin }: GpuEvent, provenance: Provenance): void {
    const level = event === 'recovered' ? 'info' : 'warn'
    this.#options.log[level]({ event, gpu, code, origin, ...origins(provenance) }, message)
  }

  /** When it begins, changes its severity, and ends; not every new number. */
  #finding({ fingerprint, detector, severity, state, subject, provenance, message }: Finding): void {
    const before = this.#severities.get(fingerprint)
    if (state === 'active' ? before === severity : before === undefined) return
    if (state === 'active') this.#severities.set(fingerprint, severity)
    else this.#severities.delete(fingerprint)
    const { gpu, gpuIndex, pid, user, run, rank } = subject
    const about = Object.fromEntries(
      Object.entries({ gpu, gpu_index: gpuIndex, pid, user, run, rank }).filter(([, value]) => value !== null),
    )
    const fields = { finding: detector, severity, state, fingerprint, ...about, ...this.#correlated(run), ...origins(provenance) }
    this.#options.log[state === 'active' && severity !== 'info' ? 'warn' : 'info'](fields, message)
  }

  #run({ id, name, user, outcome, endedAt, ending }: Run): void {
    const known = this.#outcomes.get(id)
    const now = endedAt === null ? null : outcome
    if (known === now) return
    this.#outcomes.set(id, now)
    const fields = { run: id, name, user, ...this.#correlated(id) }
    if (endedAt === null) this.#options.log.info(fields, known === undefined ? `run ${name} started` : `run ${name} goes on`)
    else {
      const why = ending?.message ? `: ${ending.message.split('\n', 1)[0]}` : ''
      this.#options.log[outcome === 'success' ? 'info' : 'warn'](
        { ...fields, outcome },
        `run ${name} ended (${outcome ?? 'unknown'})${why}`,
      )
    }
  }

  #correlated(run: string | null): { correlation_id?: string } {
    const id = run === null ? null : this.#options.correlationOf(run)
    return id === null ? {} : { correlation_id: id }
  }
}

function origins(provenance: Provenance): { provenance?: Provenance } {
  return provenance === 'live' ? {} : { provenance }
}
