/** Alerts in the live stream of the real program: what people do about them, and going on after a break. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AlertsEvent, AlertView } from '../src/core/alert-contract.ts'
import { alertsEventSchema } from '../src/core/alert-schema.ts'
import { openStream, type StreamClient } from '../src/server/pretend-agent.contract.ts'
import { buildFakeNvml, fakeNvmlScript } from './fake-nvml/index.ts'
import { RunningAgent, until } from './program.ts'

const eventsOf = (client: StreamClient): AlertsEvent[] =>
  client.events.filter(({ event }) => event === 'alerts').map(({ data }) => alertsEventSchema.parse(data))

const told = (client: StreamClient, isIt: (alert: AlertView) => boolean) =>
  client.until(() => eventsOf(client).some(({ alerts }) => alerts.some(isIt)))

async function send<T>(agent: RunningAgent, method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const answer = await fetch(agent.url + path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  expect(answer.status, path).toBe(200)
  return (await answer.json()) as T
}

describe('alerts in the stream', () => {
  it('come when one is raised, silenced and acknowledged, each once, also after a break', async () => {
    const script = fakeNvmlScript({ gpus: 2 })
    onTestFinished(() => script.remove())
    const agent = await RunningAgent.start(['--source', 'nvidia', '--interval', '0.2'], { GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    onTestFinished(async () => void (await agent.stop('SIGKILL')))
    const open = (headers: Record<string, string> = {}) => openStream(`${agent.url}/api/v1/stream?types=alerts`, headers)
    const client = await open()
    onTestFinished(() => client.close())
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    script.update({ lost: [1] })
    const known = async () => (await agent.get<{ alerts: AlertView[] }>('/api/v1/alerts')).alerts.find(({ state }) => state === 'firing')
    const { fingerprint } = await until('an alert fires', known)
    await told(client, (alert) => alert.fingerprint === fingerprint && alert.state === 'firing')

    const silence = await send<{ id: string }>(agent, 'POST', '/api/v1/silences', {
      matchers: [`fingerprint=${fingerprint}`],
      seconds: 600,
      by: 'ada',
    })
    await told(client, (alert) => alert.fingerprint === fingerprint && alert.silence === silence.id && alert.mutedBy === 'silence')
    expect(eventsOf(client).some(({ silencesChanged }) => silencesChanged)).toBe(true)
    const lastId = client.events.at(-1)?.id ?? ''
    client.close()

    await send(agent, 'DELETE', `/api/v1/silences/${silence.id}`)
    await send(agent, 'POST', `/api/v1/alerts/${encodeURIComponent(fingerprint)}/ack`, { seconds: 600, by: 'ada' })
    const back = await open({ 'last-event-id': lastId })
    onTestFinished(() => back.close())
    await told(back, (alert) => alert.fingerprint === fingerprint && alert.silence === null)
    await told(back, (alert) => alert.fingerprint === fingerprint && alert.acknowledged?.by === 'ada')
    expect(back.events.map(({ event }) => event)).not.toContain('reset')
    const ids = [...client.events, ...back.events].flatMap(({ id }) => id ?? [])
    expect(new Set(ids).size).toBe(ids.length)
  })
})
