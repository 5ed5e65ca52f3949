/** The agent of this machine, as `gpuwarden top` finds it. */
import type { Config } from '../agent/config.ts'
import { type AgentAddress, AgentClient } from '../core/agent-client.ts'
import { mayHaveToken, readToken } from './agent-address.ts'

/** A local agent answers at once or is not there. */
const PROBE_MS = 300

export interface LocalAgent {
  /** null: none to attach to. */
  readonly address: AgentAddress | null
  /** Why not, where one seems to be there. */
  readonly reason: string | null
}

/** What answers on the port may be anybody: it gets the token only when it is proven to be an agent of ours. */
export async function findLocalAgent({ values }: Config): Promise<LocalAgent> {
  const port = values['server.port']
  const url = `http://127.0.0.1:${port}`
  if (port === 0 || (await new AgentClient({ url, token: null }).version(PROBE_MS)) === null) return { address: null, reason: null }
  const token = readToken(values)
  if (token === null || mayHaveToken(values)) return { address: { url, token }, reason: null }
  return {
    address: null,
    reason: `cannot verify that ${url} is your agent, so no token is sent (--connect ${url} sends it)`,
  }
}
