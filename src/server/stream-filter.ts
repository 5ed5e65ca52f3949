/** Which events one client of the stream wants. */
import type { GpuView, StreamEvent } from '../core/kinds.ts'
import { namesGpu } from '../core/known/about-gpu.ts'

export const EVENT_TYPES: readonly StreamEvent['type'][] = ['devices', 'tick', 'health', 'finding', 'alerts', 'run', 'steps', 'playback']

export interface StreamFilter {
  /** null: all. */
  readonly types: ReadonlySet<string> | null
  /** Labels, indices or ids; null: all. */
  readonly gpus: readonly string[] | null
  /** Clients with the same key get the same events. */
  readonly key: string
}

export function createFilter(types: readonly string[] | null, gpus: readonly string[] | null): StreamFilter {
  return { types: types && new Set(types), gpus, key: gpus === null ? '' : [...gpus].sort().join(',') }
}

/** Remembers which GPUs a filter means, until the devices change. */
export class GpuMatcher {
  readonly #gpus: () => readonly GpuView[]
  readonly #names: readonly string[]
  readonly #known = new Map<string, boolean>()

  constructor(names: readonly string[], gpus: () => readonly GpuView[]) {
    this.#names = names
    this.#gpus = gpus
  }

  forget(): void {
    this.#known.clear()
  }

  matches(id: string): boolean {
    const known = this.#known.get(id)
    if (known !== undefined) return known
    const view = this.#gpus().find(({ info }) => info.id === id)
    if (!view) return this.#names.includes(id)
    const match = this.#names.some((name) => namesGpu(view.info, name))
    this.#known.set(id, match)
    return match
  }
}

/** The event without other GPUs; the same object when nothing was left out, null when nothing is left. */
export function narrow(event: StreamEvent, wants: (gpu: string) => boolean): StreamEvent | null {
  switch (event.type) {
    case 'tick': {
      const { tick } = event
      const gpus = tick.gpus.filter(({ gpu }) => wants(gpu))
      const events = tick.events.filter(({ gpu }) => gpu === null || wants(gpu))
      if (gpus.length === tick.gpus.length && events.length === tick.events.length) return event
      if (gpus.length === 0 && events.length === 0 && tick.host === null) return null
      return { type: 'tick', tick: { ...tick, gpus, events, processes: tick.processes.filter(({ gpu }) => wants(gpu)) } }
    }
    case 'devices': {
      const devices = event.devices.filter(({ id }) => wants(id))
      return devices.length === event.devices.length ? event : { type: 'devices', devices }
    }
    case 'finding':
      return event.finding.subject.gpu === null || wants(event.finding.subject.gpu) ? event : null
    case 'alerts': {
      const alerts = event.alerts.filter(({ finding: { subject } }) => subject.gpu === null || wants(subject.gpu))
      if (alerts.length === event.alerts.length) return event
      // For alerts that are gone it is not known which GPU they were about.
      const isEmpty = alerts.length === 0 && event.gone.length === 0 && !event.hasMore && !event.silencesChanged
      return isEmpty ? null : { ...event, alerts }
    }
    default:
      return event
  }
}
