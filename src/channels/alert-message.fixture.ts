/** Messages for tests. */
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import type { Finding } from '../core/model.ts'

export const NOW = Date.UTC(2026, 2, 1, 2, 35)
const GIBIBYTE = 1024 ** 3

export const finding: Finding = {
  fingerprint: 'leak|gpu=GPU-5f2c|pid=4242',
  detector: 'memory_leak',
  provenance: 'live',
  subject: { host: 'box', gpu: 'GPU-5f2c', gpuIndex: 0, pid: 4242, user: 'alice', run: 'llama-7b', rank: 0 },
  severity: 'critical',
  state: 'active',
  at: NOW,
  since: NOW - 1_500_000,
  message: 'Memory of process 4242 on GPU 0 grows by 9.6 GiB an hour and will be full in 1 h 25 min',
  evidence: {
    growth_bytes_per_hour: 9.6 * GIBIBYTE,
    memory_used_bytes: 66.4 * GIBIBYTE,
    used_ratio: 0.83,
    slope_p: 0.00012,
    per_process: true,
  },
  confidence: 0.92,
  advice: ['Look for tensors kept in a list across steps, such as loss instead of loss.item().', 'Take a snapshot: gpuwarden snapshot.'],
  predictedAt: NOW + 5_100_000,
  predictedEarliestAt: NOW + 4_200_000,
  predictedLatestAt: NOW + 6_600_000,
  riskLevel: 'high',
}

export const alert: Alert = {
  fingerprint: finding.fingerprint,
  status: 'firing',
  finding,
  firedAt: NOW - 300_000,
  resolvedAt: null,
  gpuLabel: '0',
  gpuName: 'NVIDIA H200',
  process: {
    pid: 4242,
    type: 'compute',
    memoryUsedBytes: 66 * GIBIBYTE,
    smRatio: 0.9,
    memoryRatio: null,
    encoderRatio: null,
    decoderRatio: null,
    gpu: 'GPU-5f2c',
    info: {
      pid: 4242,
      parentPid: 1,
      startedAt: NOW - 7_200_000,
      user: 'alice',
      uid: 1000,
      name: 'python',
      executable: '/usr/bin/python3',
      command: ['python', 'train.py', '--api-key', 'COMMANDLINESECRET'],
      state: 'R',
      cpuRatio: 1,
      residentBytes: GIBIBYTE,
      container: 'docker:4f1c2a',
      pod: null,
      slurmJob: '991',
    },
  },
  series: {
    title: 'Memory of GPU 0',
    unit: 'bytes',
    at: Array.from({ length: 90 }, (_, index) => NOW - (89 - index) * 60_000),
    values: Array.from({ length: 90 }, (_, index) =>
      index > 30 && index < 34 ? null : (52 + index * 0.16 + Math.sin(index / 4) * 0.3) * GIBIBYTE,
    ),
    limit: 80 * GIBIBYTE,
  },
}

export const message: AlertMessage = {
  id: 'm-01J9Z7',
  threadId: 't-5f2c-leak',
  isFirst: true,
  kind: 'alerts',
  host: 'box',
  at: NOW,
  severity: 'critical',
  alerts: [alert],
  suppressed: 0,
  delayedMs: 0,
  owners: [],
  links: { dashboard: 'http://box:4780/#/alerts', silence: 'http://box:4780/#/silence?fingerprint=leak%7Cgpu' },
  simulated: false,
}

export const resolved: AlertMessage = {
  ...message,
  id: 'm-01J9Z8',
  isFirst: false,
  alerts: [{ ...alert, status: 'resolved', resolvedAt: NOW - 10_000, finding: { ...finding, state: 'resolved' } }],
}

export const late: AlertMessage = {
  ...message,
  delayedMs: 1_500_000,
  alerts: [{ ...alert, status: 'late', resolvedAt: NOW - 600_000 }],
}

export const test: AlertMessage = { ...message, kind: 'test', severity: 'info', alerts: [] }
export const heartbeat: AlertMessage = { ...message, kind: 'heartbeat', severity: 'info', alerts: [] }

export const group: AlertMessage = {
  ...message,
  suppressed: 7,
  simulated: true,
  alerts: Array.from({ length: 30 }, (_, index) => ({
    ...alert,
    fingerprint: `f${index}`,
    gpuLabel: String(index % 8),
    finding: { ...finding, fingerprint: `f${index}`, detector: index % 2 === 0 ? 'memory_leak' : 'thermal' },
  })),
}

export const HOSTILE =
  'x\r\nBcc: evil@example.org\r\n\r\n<script>alert(1)</script><img src=x onerror=alert(1)> <!everyone> <@U1> @everyone @here [click](http://evil.example) **bold** `code` {{alerts}} "}],"a":"b\u202e\u0000\u001b[31m \ud800 $(reboot) `reboot` ; reboot &amp;'

/** Every text that comes from outside is hostile. */
export const hostile: AlertMessage = {
  ...message,
  id: HOSTILE,
  threadId: HOSTILE,
  host: HOSTILE,
  owners: [HOSTILE, 'a@b.example\r\nBcc: evil@example.org'],
  links: { dashboard: 'javascript:alert(1)', silence: `http://box/${HOSTILE}` },
  alerts: [
    {
      ...alert,
      fingerprint: HOSTILE,
      gpuLabel: HOSTILE,
      gpuName: HOSTILE,
      process: alert.process?.info
        ? { ...alert.process, info: { ...alert.process.info, name: HOSTILE, user: HOSTILE, container: HOSTILE, slurmJob: HOSTILE } }
        : null,
      series: alert.series === null ? null : { ...alert.series, title: HOSTILE, unit: HOSTILE },
      finding: {
        ...finding,
        fingerprint: HOSTILE,
        detector: HOSTILE,
        message: HOSTILE,
        advice: [HOSTILE],
        evidence: { [HOSTILE]: HOSTILE },
        subject: { ...finding.subject, host: HOSTILE, user: HOSTILE, run: HOSTILE },
      },
    },
  ],
}
