/** With the real program: whatever is an alert is a finding, and every finding is in the log, the metrics, the API and the stream. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { hostSample, NOON } from '../src/alerts/pretend-world.contract.ts'
import type { AlertView } from '../src/core/alert-contract.ts'
import type { Finding } from '../src/core/model.ts'
import { hostRecord } from '../src/core/record.ts'
import { openStream } from '../src/server/pretend-agent.contract.ts'
import { RunningAgent, temporaryFolder, until } from './program.ts'

/** A recording of a host whose disk is full from the tenth second on. */
function recording(): string {
  const folder = temporaryFolder()
  const samples = Array.from({ length: 60 }, (_, second) => hostSample(NOON + second * 1000, second < 10 ? 0.5 : 0.001))
  const lines = samples.map((sample) => `${JSON.stringify(hostRecord(sample))}\n`)
  writeFileSync(join(folder, 'host_metrics_20250730_120000.jsonl'), lines.join(''))
  return folder
}

it('a disk that is full is a finding everywhere, and an alert of the same name', { timeout: 120_000 }, async () => {
  const agent = await RunningAgent.start(['--source', `replay:${recording()}`], { GPUWARDEN_ALERTS_RULES_DISK: '{"for_seconds": 5}' })
  onTestFinished(async () => void (await agent.stop('SIGKILL')))
  const client = await openStream(`${agent.url}/api/v1/stream`)
  onTestFinished(() => client.close())
  const findings = async () => (await agent.get<{ findings: Finding[] }>('/api/v1/findings')).findings
  const found = await until('the finding is there', async () => (await findings()).find(({ detector }) => detector === 'disk'), 60_000)
  expect(found).toMatchObject({ state: 'active', subject: { gpu: null } })
  expect(found.fingerprint).toBe(`disk|host=${found.subject.host}`)

  const alerts = async () => (await agent.get<{ alerts: AlertView[] }>('/api/v1/alerts')).alerts
  const alert = await until('the alert fires', async () => (await alerts()).find(({ state }) => state === 'firing'), 60_000)
  expect(alert).toMatchObject({ fingerprint: found.fingerprint, finding: { severity: 'critical', message: found.message } })
  const known = new Set((await findings()).map(({ fingerprint }) => fingerprint))
  expect((await alerts()).filter(({ state, fingerprint }) => state !== 'resolved' && !known.has(fingerprint))).toEqual([])

  expect(await agent.text('/metrics')).toMatch(/^gpuwarden_findings_active\{detector="disk",severity="\w+"\} 1$/m)
  const isIt = ({ event, data }: { event: string; data: unknown }) =>
    event === 'finding' && (data as { finding: Finding }).finding.fingerprint === found.fingerprint
  await client.until(() => client.events.some(isIt))
  await until('it is in the log', () => agent.lines('findings').some(({ detector }) => detector === 'disk'))
})
