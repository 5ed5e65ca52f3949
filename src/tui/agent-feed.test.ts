/** How `top` becomes current on an agent, and stays so over gaps. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { Finding } from '../core/model.ts'
import { AgentFeed } from './agent-feed.ts'
import { emptyState, finding } from './screen-data.fixture.ts'

const [hot, idle] = [finding('thermal', { gpu: 'GPU-0' }), finding('idle_holding', { pid: 7 })]
const NOTHING = { hostname: 'node7', sources: [], gpus: [], processes: [], host: null, events: [], runs: [], alerts: [], silences: [] }

/** Takes its picture when it is asked, and answers as slowly as it is told to. */
async function slowAgent() {
  const agent = { findings: [hot, idle] as readonly Finding[], isBroken: false, answerMs: 200, stream: null as ServerResponse | null }
  const server = createServer((request, response) => {
    if (request.url === '/api/v1/stream') {
      response.writeHead(200).flushHeaders()
      agent.stream = response
      return
    }
    const body = JSON.stringify({ ...NOTHING, at: Date.now(), findings: agent.findings })
    setTimeout(() => response.writeHead(agent.isBroken ? 500 : 200).end(body), agent.answerMs)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const say = (event: string, data: object) => agent.stream?.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  return { agent, say, address: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null } }
}

it('misses nothing that happens while it asks what there is, and begins anew after every gap', async () => {
  const { agent, say, address } = await slowAgent()
  const state = emptyState(Date.now)
  const feed = new AgentFeed({ address, state, isLocal: true, onChange: () => undefined })
  onTestFinished(() => feed.stop())
  const prints = () => state.data({ columns: 10, gpu: null }).findings.map(({ fingerprint }) => fingerprint)

  const started = feed.start()
  await expect.poll(() => agent.stream, { interval: 5 }).not.toBe(null)
  await new Promise((resolve) => setTimeout(resolve, 50))
  // The agent has taken its picture, which is still on its way.
  say('finding', { type: 'finding', finding: { ...hot, state: 'resolved' } })
  await started
  expect(prints()).toEqual([idle.fingerprint])

  // A gap that the stream cannot fill, at a moment in which the agent cannot answer either.
  agent.findings = [hot]
  agent.isBroken = true
  say('reset', { type: 'reset', reason: 'too_old' })
  await expect.poll(() => state.linkLost, { timeout: 5000 }).not.toBe(null)
  agent.isBroken = false
  await expect.poll(prints, { timeout: 10_000 }).toEqual([hot.fingerprint])
  expect(state.linkLost).toBe(null)

  say('finding', { type: 'finding', finding: idle })
  await expect.poll(() => prints().length, { timeout: 5000 }).toBe(2)
})

it('says so when the agent refuses at the beginning, and closes its stream', async () => {
  const { agent, address } = await slowAgent()
  agent.isBroken = true
  const state = emptyState(Date.now)
  const feed = new AgentFeed({ address, state, isLocal: true, onChange: () => undefined })
  await expect(feed.start()).rejects.toThrow('500')
  await expect.poll(() => agent.stream?.destroyed, { timeout: 5000 }).toBe(true)
})

it('begins anew when the recording that the agent plays goes to another moment', async () => {
  const { agent, say, address } = await slowAgent()
  agent.answerMs = 1
  const state = emptyState(Date.now)
  const feed = new AgentFeed({ address, state, isLocal: true, onChange: () => undefined })
  onTestFinished(() => feed.stop())
  const prints = () => state.data({ columns: 10, gpu: null }).findings.map(({ fingerprint }) => fingerprint)
  await feed.start()
  const playback = { state: 'paused', at: 5, speed: 1, jumps: 3 }
  agent.findings = [idle]
  // How it is played is no news of another moment.
  say('playback', { type: 'playback', playback })
  say('playback', { type: 'playback', playback: { ...playback, state: 'seeking' } })
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(prints().length).toBe(2)
  say('playback', { type: 'playback', playback: { ...playback, jumps: 4 } })
  await expect.poll(prints, { timeout: 5000 }).toEqual([idle.fingerprint])
})
