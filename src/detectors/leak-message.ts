/** The finding about a leak. */
import { ahead, fullSpan } from '../core/forecast-words.ts'
import { formatBytes, formatDuration } from '../core/format.ts'
import type { Leak } from '../core/memory/leak-verdict.ts'
import { fromLine } from '../core/memory/line-recording.ts'
import { placeText } from '../core/memory/oom-report.ts'
import type { Reading, RecordedLine } from '../core/model.ts'
import type { FindingDraft } from './finding.ts'
import { evidenceNumber } from './words.ts'

export type LeakSource = 'device' | 'process' | 'host memory' | 'allocator'

export interface LeakStatement {
  readonly at: number
  /** Who leaks, as the message starts. */
  readonly name: string
  readonly leak: Leak
  /** Milliseconds per unit of the leak's axis. */
  readonly msPerUnit: number
  readonly capacity: number
  readonly source: LeakSource
  /** The line that was recorded to keep the memory. */
  readonly line?: RecordedLine | null
  /** What is left of the memory, where the leak was not weighed against all of it. */
  readonly roomBytes?: Reading
}

export function leakDraft({ at, name, leak, msPerUnit, capacity, source, line = null, roomBytes = null }: LeakStatement): FindingDraft {
  const rate = leak.slope * capacity
  const lastedMs = (leak.to - leak.from) * msPerUnit
  const room = roomBytes ?? leak.room * capacity
  const { fullMs, earliestMs, latestMs } = fullSpan((room / rate) * msPerUnit)
  const perSecond = msPerUnit > 0 ? (rate * 1000) / msPerUnit : 0
  const pace =
    source === 'allocator' ? `${formatBytes(rate)} per step` : `${perTime(perSecond)}${source === 'host memory' ? ' of host memory' : ''}`
  const device = source === 'device' || source === 'process'
  return {
    severity: 'warning',
    since: at - lastedMs,
    message:
      `${name} leaks ${pace}${line === null ? '' : ` from ${fromLine(line)}`}: ${formatBytes(leak.rise * capacity)} more in ${formatDuration(lastedMs)}, and nothing is freed. ` +
      `At this rate the ${source === 'host memory' ? 'host' : 'GPU'} will be full ${ahead(fullMs, earliestMs, latestMs)}.` +
      (device ? ' Seen from the device only: a cache that is still filling looks the same.' : ''),
    evidence: {
      source,
      riseBytes: Math.round(leak.rise * capacity),
      bytesPerSecond: Math.round(perSecond),
      bytesPerStep: source === 'allocator' ? Math.round(rate) : null,
      lastedSeconds: evidenceNumber(lastedMs / 1000),
      largestFallBytes: Math.round(leak.fall * capacity),
      trendScore: evidenceNumber(leak.score),
      steadiness: evidenceNumber(leak.steadiness),
      roomBytes: Math.round(room),
      fullAt: Number.isFinite(fullMs) ? Math.round(at + fullMs) : null,
      ...lineEvidence(line),
    },
    confidence: confidence(leak, lastedMs, device),
    advice: line === null ? ADVICE[source] : ['Save a checkpoint before memory is full.', lineAdvice(line)],
  }
}

/** What a finding about a run says of the line that was recorded. */
export function lineEvidence(line: RecordedLine | null): FindingDraft['evidence'] {
  if (line === null) return {}
  const { bytesPerStep, share } = line
  return {
    line: placeText(line),
    lineBytesPerStep: bytesPerStep === null ? null : Math.round(bytesPerStep),
    lineGrowthRatio: share === null ? null : evidenceNumber(share),
  }
}

export function lineAdvice(line: RecordedLine): string {
  return `Look at ${placeText(line)}: what it allocates is kept from step to step. Keep .item() or .detach() of it, or drop what is old.`
}

function perTime(bytesPerSecond: number): string {
  if (bytesPerSecond >= 1024 ** 2) return `${formatBytes(bytesPerSecond)} per second`
  return bytesPerSecond * 3600 >= 64 * 1024 ** 2
    ? `${formatBytes(bytesPerSecond * 3600)} per hour`
    : `${formatBytes(bytesPerSecond * 86_400)} per day`
}

/** Higher the more of the free memory the leak has taken and the steadier it is; lower from the device only and in the first minute. */
function confidence(leak: Leak, lastedMs: number, device: boolean): number {
  const taken = leak.rise / (leak.rise + Math.max(0, leak.room))
  const even = Math.exp(-Math.abs(Math.log(Math.max(0.01, leak.steadiness))))
  return (0.5 + 0.35 * Math.min(1, 2 * taken) + 0.15 * even) * (device ? (lastedMs < 60_000 ? 0.7 : 0.85) : 1)
}

const ADVICE: Readonly<Record<LeakSource, readonly string[]>> = {
  allocator: [
    'Save a checkpoint before memory is full.',
    'Look for tensors kept from step to step: a loss summed without .item() or .detach(), lists of outputs, hooks, unbounded caches.',
    'gpuwarden snapshot --run NAME records which line keeps the memory, while the run goes on (Python SDK with PyTorch).',
  ],
  process: ['Check what this process keeps.', 'Report steps with the SDK: then a leak and a filling cache can be told apart.'],
  device: ['Check which process grows.', 'Report steps with the SDK: then a leak and a filling cache can be told apart.'],
  'host memory': [
    'Look for tensors on the CPU and Python objects that are kept from step to step, and for data loader workers that keep what they read.',
    'gpuwarden snapshot --run NAME --host records which line keeps them (Python SDK); memray sees other native memory, too.',
  ],
}
