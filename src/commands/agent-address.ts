/** Where the agent of a configuration is, and the token that it may get. */
import { statSync } from 'node:fs'
import type { Config, ConfigValues } from '../agent/config.ts'
import { type AgentAddress, AgentClient, tokenIn } from '../core/agent-client.ts'
import { isAgentOfOurs } from '../core/agent-file.ts'
import { EXIT, Failure } from '../core/failure.ts'

export type AgentSettings = Pick<ConfigValues, 'server.host' | 'server.port' | 'server.token' | 'server.token_file'>

const COMMAND_LIMIT_MS = 10_000

/** For a command that is about the agent alone. */
export function agentOf({ values, origins }: Config): AgentClient {
  const { 'server.port': port, 'server.token': token, 'server.token_file': file } = values
  if (port === 0) throw new Failure('--port: expected the port of the running agent; got 0', { exitCode: EXIT.usage })
  if (token === null && file !== null && tokenIn(file) === null)
    throw new Failure(`server.token_file ${file} cannot be read, or is empty`, {
      exitCode: EXIT.usage,
      hint: 'Only the user that runs the agent can read it.',
    })
  return new AgentClient(agentAddress(values, isNamed(origins)), COMMAND_LIMIT_MS)
}

/** An address that the person named gets the token; one that was assumed only when it is an agent of ours. */
export function agentAddress(settings: AgentSettings, isNamedByPerson: boolean): AgentAddress {
  const { 'server.host': host, 'server.port': port } = settings
  const token = readToken(settings)
  const isTokenWithheld = token !== null && !isNamedByPerson && !mayHaveToken(settings)
  return { url: `http://${reachable(host)}:${port}`, token, isTokenWithheld }
}

export function isNamed(origins: Config['origins']): boolean {
  return origins['server.port'].from === 'flag' || origins['server.host'].from === 'flag'
}

/** The agent's token where we may read it; whoever may not is asked for one. */
export function readToken({ 'server.token': token, 'server.token_file': file }: AgentSettings): string | null {
  return token ?? (file === null ? null : tokenIn(file))
}

/** Whether what listens on the port is an agent of this user, of root, or of whoever owns the token anyway. */
export function mayHaveToken({ 'server.port': port, 'server.token_file': file }: AgentSettings): boolean {
  const owner = file === null ? null : (statSync(file, { throwIfNoEntry: false })?.uid ?? null)
  return isAgentOfOurs(port, owner)
}

/** An agent that listens on every address is reached on this machine's own. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}
