import type { HubEvent, Sink } from '../core/kinds.ts'
import { TrainingMetrics } from './training-metrics.ts'
import { XidCounts } from './xid-counts.ts'

/** The exporter counts events; the state keeps only the latest. */
export class EventCounts implements Sink {
  readonly name = 'training'
  readonly training = new TrainingMetrics()
  readonly xids = new XidCounts()

  accept(event: HubEvent): void {
    if (event.type === 'steps') this.training.accept(event.steps, event.provenance)
    else if (event.type === 'run') this.training.acceptRun(event.run)
    else if (event.type === 'tick') this.xids.accept(event.tick.events)
    else if (event.type === 'restart') for (const counts of [this.training, this.xids]) counts.clear()
  }
}
