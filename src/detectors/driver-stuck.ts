/** The driver does not respond, or reading it kills the sampler: reported by the sampler's supervisor, never guessed from values. */
import type { Detector, DetectorKind } from '../core/detector-contract.ts'
import type { Finding, Severity, SourceHealth } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

export const driverStuck: DetectorKind<Thresholds<'driverStuck'>> = {
  name: 'driver_stuck',
  about: 'A driver does not respond, or reading it kills the sampler process.',
  severities: ['warning', 'critical'],
  inputs: ['health'],
  defaults: THRESHOLDS.driverStuck,
  create: (options) => createDriverStuck(options),
}

function createDriverStuck(options: Thresholds<'driverStuck'>): Detector {
  const book = new FindingBook('driver_stuck')
  const subject = subjectOf({})

  function look(health: SourceHealth, at: number): readonly Finding[] {
    const part = `source=${health.source}`
    const key = book.key(subject, part)
    const severity = severityOf(health, options)
    if (severity === null) {
      // A source that is starting again has not yet shown that it works.
      if (health.state === 'starting') return NO_FINDINGS
      return book.resolve(key, at, `The ${health.source} source ${health.state === 'ok' ? 'responds again' : 'has ended'}.`)
    }
    if (!book.due(key, at, severity)) return NO_FINDINGS
    return book.raise(
      subject,
      at,
      {
        severity,
        since: health.since,
        message: `${statement(health)}${health.message === null ? '' : ` ${health.message}`}`,
        evidence: {
          source: health.source,
          state: health.state,
          restarts: health.restarts,
          last_sample_at: health.lastSampleAt,
          next_start_at: health.nextStartAt,
        },
        confidence: 1,
        advice: advice(health),
      },
      part,
    )
  }

  return {
    accept: (input) => (input.type === 'health' ? look(input.health, input.at) : NO_FINDINGS),
    snapshot: () => book.snapshot(),
    restore: (state) => book.restore(state),
  }
}

function severityOf(health: SourceHealth, options: Thresholds<'driverStuck'>): Severity | null {
  switch (health.state) {
    case 'not_responding':
      return health.source === 'host' ? 'warning' : 'critical'
    case 'crashed':
      return health.restarts >= options.restarts && health.source !== 'host' ? 'critical' : 'warning'
    case 'failed':
      return 'warning'
    default:
      return null
  }
}

function clockTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

function statement(health: SourceHealth): string {
  switch (health.state) {
    case 'not_responding':
      return `The ${health.source} driver has not been responding since ${clockTime(health.since)}.`
    case 'crashed':
      return `The sampler process died while reading the ${health.source} driver (${health.restarts} restarts so far).`
    default:
      return `The ${health.source} source has been unreadable since ${clockTime(health.since)}.`
  }
}

function advice(health: SourceHealth): readonly string[] {
  if (health.state === 'failed') return ['Find the reason in the agent log, fix it, and restart the agent.']
  return ['Check the kernel log (dmesg) for XID errors and hung tasks.', 'If nvidia-smi hangs too, reboot the server.']
}
