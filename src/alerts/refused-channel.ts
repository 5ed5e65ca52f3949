/** One channel refuses alerts: the others carry the news, once, and its end. */
import type { AlertStatus } from '../core/alert-contract.ts'
import type { Severity } from '../core/model.ts'
import type { ChannelQueue } from './channel-queue.ts'
import type { Notice } from './notice.ts'
import { channelsFor, type Route } from './routes.ts'

const DETECTOR = 'channel_refused'

export interface ChannelProblem {
  readonly channel: string
  /** In words; null: the channel takes messages. */
  readonly problem: string | null
  readonly severity: Severity
}

export interface OtherChannels {
  readonly queues: ReadonlyMap<string, ChannelQueue>
  readonly routes: readonly Route[]
  /** Whether a message would arrive there now. */
  readonly isWorking: (channel: string) => boolean
  readonly host: string
  readonly now: number
  readonly nowMs: number
}

/** May be called after every delivery; what was said before is not said again. */
export function tellOthers({ channel, problem, severity }: ChannelProblem, others: OtherChannels): void {
  const fingerprint = `${DETECTOR}|channel=${channel}`
  const notice = noticeOf(fingerprint, channel, problem, severity, others)
  if (problem !== null) {
    for (const queue of chosen(channel, notice, others)) if (!queue.told(fingerprint) && !queue.has(fingerprint)) queue.announce(notice)
    return
  }
  for (const queue of others.queues.values()) {
    const told = queue.told(fingerprint)
    if (!told) queue.withdraw(fingerprint)
    if (told || queue.announces(fingerprint)) queue.clear({ ...notice, thread: told?.thread || null })
  }
}

/** Those that the routes name for it; where none of them works, all that do. */
function chosen(channel: string, { alert }: Notice, { queues, routes, isWorking }: OtherChannels): readonly ChannelQueue[] {
  const working = [...queues.values()].filter(({ name }) => name !== channel && isWorking(name))
  const routed = channelsFor(routes, queues.keys(), { finding: alert.finding, gpuLabel: null })
  const wanted = working.filter(({ name }) => routed.has(name))
  return wanted.length > 0 ? wanted : working
}

function noticeOf(fingerprint: string, channel: string, problem: string | null, severity: Severity, others: OtherChannels): Notice {
  const { host, now, nowMs } = others
  const status: AlertStatus = problem === null ? 'resolved' : 'firing'
  return {
    alert: {
      ...{ fingerprint, status, firedAt: now, resolvedAt: problem === null ? now : null },
      ...{ gpuLabel: null, gpuName: null, process: null, series: null },
      finding: {
        ...{ fingerprint, detector: DETECTOR, provenance: 'live', severity, confidence: 1 },
        subject: { host, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null },
        ...{ state: problem === null ? 'resolved' : 'active', at: now, since: now },
        message: problem ?? `${channel} takes alerts again.`,
        evidence: { channel },
        advice: [`Repair it and try it with: gpuwarden alerts test ${channel}`],
        ...{ predictedAt: null, predictedEarliestAt: null, predictedLatestAt: null, riskLevel: null },
      },
    },
    ...{ severity, simulated: false, owner: null, at: now, queuedMs: nowMs, urgent: true, held: false, thread: null },
  }
}
