/** XID errors: events, so a finding ends when none has come for a while. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Detector, DetectorKind } from '../core/detector-contract.ts'
import type { Finding, GpuEvent } from '../core/model.ts'
import { byType } from './by-type.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { UNKNOWN_XID, XID_MEANINGS } from './xid-codes.ts'

interface Seen {
  lastAt: number
  count: number
}

const LABEL_CAP = 256
const SEEN_CAP = 96

export const xid: DetectorKind<Thresholds<'xid'>> = {
  name: 'xid',
  about: 'The NVIDIA driver reported an XID error: critical for hardware faults, a warning or information for others.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['event', 'gpu', 'device'],
  outlivesGpu: true,
  defaults: THRESHOLDS.xid,
  create: (options) => createXid(options.activeMinutes * 60_000),
}

function createXid(activeMs: number): Detector {
  const book = new FindingBook('xid')
  const seen = new BoundedMap<string, Seen>(SEEN_CAP)
  const devices = new BoundedMap<string, { index: number; label: string }>(LABEL_CAP)
  let nowAt = 0

  function happened(event: GpuEvent): readonly Finding[] {
    // The kernel log is read from boot on: old events are not news.
    if (event.event !== 'xid' || (nowAt > 0 && event.at < nowAt - activeMs)) return NO_FINDINGS
    const code = event.code
    const { severity, meaning, advice } = (code === null ? undefined : XID_MEANINGS.get(code)) ?? UNKNOWN_XID
    const info = event.gpu === null ? undefined : devices.get(event.gpu)
    const subject = subjectOf({ gpu: event.gpu, gpuIndex: info?.index ?? null })
    const part = `code=${code ?? 'unknown'}`
    const key = book.key(subject, part)
    const before = seen.get(key) ?? seen.keep(key, { lastAt: event.at, count: 0 })
    before.count++
    before.lastAt = Math.max(before.lastAt, event.at)
    if (!book.due(key, event.at, severity)) return NO_FINDINGS
    const where = event.gpu === null ? 'a GPU that the driver did not name' : `GPU ${info?.label ?? event.gpu}`
    const times = before.count > 1 ? `, ${before.count} times` : ''
    return book.raise(
      subject,
      event.at,
      {
        severity,
        message: `XID ${code ?? '(no number)'} on ${where}${times}: ${meaning}.`,
        evidence: { xid: code, count: before.count, origin: event.origin, driver_message: event.message },
        confidence: 1,
        advice: [advice],
      },
      part,
    )
  }

  function fade(at: number): readonly Finding[] {
    nowAt = at
    if (seen.size === 0) return NO_FINDINGS
    let ended: Finding[] | null = null
    for (const [key, entry] of seen) {
      if (at < entry.lastAt) entry.lastAt = at
      if (at - entry.lastAt < activeMs) continue
      seen.delete(key)
      ended ??= []
      ended.push(...book.resolve(key, at, `No more XID errors of this kind for ${Math.round(activeMs / 60_000)} min.`))
    }
    return ended ?? NO_FINDINGS
  }

  return {
    accept: byType({
      event: ({ event }) => happened(event),
      gpu: ({ sample }) => fade(sample.at),
      device: ({ device: { id, index, label } }) => void devices.set(id, { index, label }),
    }),
    snapshot: () => ({ findings: book.snapshot(), seen: seen.saved(), devices: devices.saved(), nowAt }),
    restore(state) {
      const saved = state as { findings: unknown; seen: unknown; devices: unknown; nowAt: number }
      book.restore(saved.findings)
      seen.load(saved.seen)
      devices.load(saved.devices)
      nowAt = saved.nowAt
    },
  }
}
