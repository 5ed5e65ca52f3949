/** The agent that watches a run: the one that is running, or one of our own for as long as the run takes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent } from '../agent/app.ts'
import type { Config } from '../agent/config.ts'
import { unansweredFolders } from '../agent/folders.ts'
import { AgentClient, tokenFromEnvironment } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { agentAddress, isNamed, readToken } from './agent-address.ts'

const PROBE_MS = 1000

export interface Watcher {
  readonly link: AgentClient
  /** null: the agent was running already. */
  readonly agent: Agent | null
  /** For the SDK in the command; null when no token is needed. */
  readonly tokenFile: string | null
  close(reason: string): Promise<void>
}

/** null: none answers. */
export async function findAgent(config: Config, env: NodeJS.ProcessEnv = process.env): Promise<AgentClient | null> {
  const link = linkOf(config, env)
  if (link === null) return null
  const { status, body } = await link.tryGet('/api/v1/health', PROBE_MS)
  return status === 200 && typeof body === 'object' && body !== null && 'sources' in body ? link : null
}

/** Never fails because of a port: the command is what matters, and a free port does as well. */
export async function openWatcher(config: Config): Promise<Watcher> {
  const token = await tokenFileOf(config)
  const running = await findAgent(config)
  if (running) return { link: running, agent: null, tokenFile: token.file, close: token.remove }
  const { values } = config
  const unanswered = await unansweredFolders(config)
  let agent = new Agent({ config, logToStderr: false, unanswered })
  let url: string | null
  try {
    url = (await agent.start()).url
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== EXIT.noListen) throw error
    agent = new Agent({ config: { ...config, values: { ...values, 'server.port': 0 } }, logToStderr: false, unanswered })
    url = (await agent.start()).url
  }
  if (url === null) {
    await agent.stop('the server is off')
    throw new Failure('server.enabled is false, and a run needs the server', { exitCode: EXIT.usage })
  }
  const started = agent
  return {
    link: new AgentClient({ url, token: readToken(values) }),
    agent: started,
    tokenFile: token.file,
    close: async (reason) => {
      await started.stop(reason)
      await token.remove()
    },
  }
}

function linkOf({ values, origins }: Config, env: NodeJS.ProcessEnv): AgentClient | null {
  if (env.GPUWARDEN_URL) return new AgentClient({ url: env.GPUWARDEN_URL, token: tokenFromEnvironment(env) ?? readToken(values) })
  return values['server.port'] === 0 ? null : new AgentClient(agentAddress(values, isNamed(origins)))
}

/** A token that was given as such goes to the command in a file: others can read the environment of a process of theirs, not this. */
async function tokenFileOf({ values }: Config): Promise<{ file: string | null; remove: () => Promise<void> }> {
  const token = values['server.token']
  if (token === null) return { file: values['server.token_file'], remove: async () => undefined }
  const folder = await mkdtemp(join(tmpdir(), 'gpuwarden-'))
  const file = join(folder, 'token')
  await writeFile(file, token, { mode: 0o600 })
  return { file, remove: () => rm(folder, { recursive: true, force: true }) }
}
