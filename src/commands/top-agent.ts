/** The agent of this machine, as the dashboard finds it, and the token that it may get. */
import type { Config } from '../agent/config.ts'
import { tryReadText } from '../core/system-file.ts'
import { type AgentAddress, isAgent } from '../tui/agent-client.ts'
import { mayHaveToken } from './agent-client.ts'

/** A local agent answers at once or is not there. */
const PROBE_MS = 300

export interface LocalAgent {
  /** null: none to attach to. */
  readonly address: AgentAddress | null
  /** Why not, where one seems to be there. */
  readonly reason: string | null
}

/** What answers on the port may be anybody: it gets the token only when it is proven to be an agent of ours. */
export async function findLocalAgent(config: Config): Promise<LocalAgent> {
  const port = config.values['server.port']
  const url = `http://127.0.0.1:${port}`
  if (port === 0 || !(await isAgent({ url, token: null }, PROBE_MS))) return { address: null, reason: null }
  const token = readToken(config)
  if (token === null || mayHaveToken(config.values)) return { address: { url, token }, reason: null }
  return {
    address: null,
    reason: `nothing proves that what answers at ${url} is your agent, so it gets no token (--connect ${url} sends it)`,
  }
}

/** The agent's token where we may read it; whoever may not is asked for none. */
export function readToken(config: Config): string | null {
  const file = config.values['server.token_file']
  if (config.values['server.token'] !== null) return config.values['server.token']
  return file === null ? null : (tryReadText(file)?.trim() ?? null)
}
