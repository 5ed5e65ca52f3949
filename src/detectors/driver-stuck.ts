/** A driver is missing, refuses, does not respond or crashes: reported by the sampler's supervisor, never guessed from values. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Detector, DetectorKind } from '../core/detector-contract.ts'
import type { Finding, GpuInfo, GpuSample, Severity, SourceHealth } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

const GPU_CAP = 256
const TRIED_AGAIN = 'Fix what the message names. gpuwarden tries again every few seconds; it needs no restart.'

export const driverStuck: DetectorKind<Thresholds<'driverStuck'>> = {
  name: 'driver_stuck',
  about: 'A driver is missing, does not respond, or reading it kills the sampler process.',
  severities: ['warning', 'critical'],
  inputs: ['health', 'device', 'gpu'],
  findsAgainSeconds: 120,
  defaults: THRESHOLDS.driverStuck,
  create: (options) => createDriverStuck(options),
}

function createDriverStuck(options: Thresholds<'driverStuck'>): Detector {
  const book = new FindingBook('driver_stuck')
  const subject = subjectOf({})
  const cards = new BoundedMap<string, GpuInfo>(GPU_CAP)
  /** Sources that cannot be read at all: one finding says it for all their cards. */
  const down = new Set<string>()

  /** A card without a driver, next to others that have theirs. */
  function lookAtCard({ gpu, at, state, stateReason }: GpuSample): readonly Finding[] {
    if (state !== 'no_driver' && book.size === 0) return NO_FINDINGS
    const card = cards.get(gpu)
    const whose = subjectOf({ gpu, gpuIndex: card?.index ?? null })
    const key = book.key(whose)
    const name = `GPU ${card?.label ?? gpu}`
    if (state !== 'no_driver') return book.resolve(key, at, `${name} has its driver.`)
    if ((card && down.has(card.vendor)) || !book.due(key, at, 'warning')) return NO_FINDINGS
    return book.raise(whose, at, {
      severity: 'warning',
      message: `${name} has no driver. ${stateReason ?? ''}`,
      evidence: { state, reason: stateReason },
      confidence: 1,
      advice: [TRIED_AGAIN],
    })
  }

  function look(health: SourceHealth, at: number): readonly Finding[] {
    const part = `source=${health.source}`
    const key = book.key(subject, part)
    const severity = severityOf(health, options)
    if (severity !== null) down.add(health.source)
    else if (health.state !== 'starting') down.delete(health.source)
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
    accept(input) {
      if (input.type === 'health') return look(input.health, input.at)
      if (input.type === 'device') cards.set(input.device.id, input.device)
      return input.type === 'gpu' ? lookAtCard(input.sample) : NO_FINDINGS
    },
    snapshot: () => book.snapshot(),
    restore: (state) => book.restore(state),
  }
}

function severityOf(health: SourceHealth, options: Thresholds<'driverStuck'>): Severity | null {
  switch (health.state) {
    case 'not_responding':
      // One that has never been given up is still starting, and may only be slow.
      return health.source === 'host' || health.restarts === 0 ? 'warning' : 'critical'
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
      return `The ${health.source} driver has not been usable since ${clockTime(health.since)}.`
  }
}

function advice(health: SourceHealth): readonly string[] {
  if (health.state === 'failed') return [TRIED_AGAIN]
  return ['Check the kernel log (dmesg) for XID errors and hung tasks.', 'If nvidia-smi hangs too, reboot the server.']
}
