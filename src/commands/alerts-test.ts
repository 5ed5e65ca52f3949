/** `gpuwarden alerts test`: a message to every channel, or to one, and what the other side said. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import { alertsFolder } from '../agent/alerting.ts'
import type { Config } from '../agent/config.ts'
import { webUiUrl } from '../agent/web-ui-url.ts'
import type { AlertChannel } from '../alerts/alerts-api.ts'
import { deliver } from '../alerts/courier.ts'
import { testMessage } from '../alerts/test-message.ts'
import { openChannels } from '../channels/index.ts'
import { PushSubscriptions } from '../channels/push-subscriptions.ts'
import { type AgentClient, AgentFault } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { printable } from '../core/format.ts'
import { agentOf } from './agent-address.ts'

interface Tested {
  readonly channel: string
  readonly ok: boolean
  readonly answer: string
  /** Nobody is there to hear it, which is no fault. */
  readonly idle: boolean
}

const TIME_LIMIT_MS = 60_000

/** The agent does it where one runs, with the channels that it has; otherwise they are opened here, from the configuration as it is. */
export async function testChannels(config: Config, channel: string | null, asJson: boolean): Promise<number> {
  const agent = config.values['server.port'] === 0 ? null : agentOf(config)
  const names = await agent?.get<{ channels: readonly { channel: string }[] }>('/api/v1/channels').then(
    ({ channels }) => channels.map((one) => one.channel),
    (error: unknown) => {
      if (error instanceof AgentFault && error.code === 'unreachable') return null
      throw error
    },
  )
  const tested = agent && names ? await testThere(agent, channel === null ? names : [channel]) : await testHere(config, channel)
  // A browser that nobody has subscribed is left out, unless it is what was asked for.
  const isLeftOut = (one: Tested) => one.idle && channel === null
  const isRefused = tested.some((one) => !one.ok && !isLeftOut(one))
  const isHeard = tested.some((one) => one.ok)
  if (asJson) process.stdout.write(`${JSON.stringify({ by: names ? agent?.url : null, tested }, null, 2)}\n`)
  else {
    process.stdout.write(names ? `Sent by the agent at ${agent?.url}.\n` : 'No agent runs: sent from here.\n')
    const word = (one: Tested) => (one.ok ? 'taken' : isLeftOut(one) ? 'left out' : 'REFUSED')
    for (const one of tested) process.stdout.write(`${one.channel}: ${word(one)}\n${indented(one.answer)}\n`)
    if (!isHeard && !isRefused) process.stdout.write('No channel would deliver an alert: docs/channels.md explains how to set one up.\n')
  }
  return isHeard && !isRefused ? EXIT.ok : EXIT.checkFailed
}

async function testThere(agent: AgentClient, names: readonly string[]): Promise<Tested[]> {
  const path = (name: string) => `/api/v1/channels/${encodeURIComponent(name)}/test`
  return await Promise.all(names.map((name) => agent.post<Tested>(path(name), undefined, TIME_LIMIT_MS + 5000)))
}

async function testHere({ values }: Config, wanted: string | null): Promise<Tested[]> {
  const stateDir = alertsFolder(values, values['log.dir']) ?? join(values['log.dir'], 'alerts')
  const { channels, unusable, problems } = openChannels(values, { env: process.env, stateDir, push: new PushSubscriptions(stateDir) })
  const names = [...channels.map((channel) => channel.name), ...unusable.keys()]
  if (wanted !== null && !names.includes(wanted))
    throw new Failure(`there is no channel "${wanted}"`, { exitCode: EXIT.usage, hint: `There are: ${names.join(', ') || 'none'}.` })
  for (const problem of problems) process.stderr.write(`gpuwarden: ${problem}\n`)
  const message = testMessage(hostname(), Date.now(), webUiUrl(values, hostname()))
  const isWanted = (name: string) => wanted === null || wanted === name
  const sent = channels.map(async (channel): Promise<Tested | null> => {
    if (!isWanted(channel.name)) return null
    const idle = (channel as AlertChannel).idle?.() ?? null
    if (idle !== null) return { channel: channel.name, ok: false, answer: idle, idle: true }
    const delivery = await deliver(channel, message, TIME_LIMIT_MS, new AbortController().signal)
    return { channel: channel.name, ok: delivery.ok, answer: delivery.ok ? delivery.answer : delivery.reason, idle: false }
  })
  return [
    ...(await Promise.all(sent)).filter((one) => one !== null),
    ...Array.from(unusable, ([channel, problem]) => ({ channel, ok: false, answer: `not usable: ${problem}`, idle: false })).filter((one) =>
      isWanted(one.channel),
    ),
  ]
}

/** What a server says is other people's text. */
function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `  ${printable(line)}`)
    .join('\n')
}
