import { randomBytes } from 'node:crypto'
import type { AlertMessage, Delivery } from '../core/alert-contract.ts'
import type { AlertsOptions } from './alerts-api.ts'
import { linksFor } from './composer.ts'
import { deliver } from './courier.ts'

export async function sendTest(channel: string, options: AlertsOptions, signal: AbortSignal): Promise<Delivery> {
  const { channels, state, now, settings, deliveryTimeoutMs = 60_000 } = options
  const found = channels.get(channel)
  const known = [...channels.keys()].join(', ')
  if (!found) return { ok: false, retry: false, reason: `there is no channel "${channel}"; configured: ${known || 'none'}` }
  return await deliver(found, testMessage(state.hostname, now(), settings['alerts.dashboard_url']), deliveryTimeoutMs, signal)
}

/** What `alerts test` sends: clearly a test, with everything a real message has. */
export function testMessage(host: string, now: number, webUiUrl: string | null): AlertMessage {
  const id = `test-${randomBytes(8).toString('hex')}`
  return {
    id,
    threadId: id,
    isFirst: true,
    kind: 'test',
    host,
    at: now,
    severity: 'info',
    alerts: [
      {
        fingerprint: 'test',
        status: 'firing',
        finding: {
          fingerprint: 'test',
          detector: 'test',
          provenance: 'live',
          subject: { host, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null },
          severity: 'info',
          state: 'active',
          at: now,
          since: now,
          message: 'This is a test of gpuwarden. Nothing is wrong: alerts arrive here.',
          evidence: { test: true },
          confidence: 1,
          advice: ['There is nothing to do.'],
          predictedAt: null,
          predictedEarliestAt: null,
          predictedLatestAt: null,
          riskLevel: null,
        },
        firedAt: now,
        resolvedAt: null,
        gpuLabel: null,
        gpuName: null,
        process: null,
        series: null,
      },
    ],
    suppressed: 0,
    delayedMs: 0,
    owners: [],
    links: linksFor(webUiUrl, null),
    simulated: false,
  }
}
