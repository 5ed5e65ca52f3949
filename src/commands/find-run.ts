/** The run that a command asks, by its id or its name. */
import type { AgentClient } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatClock, printable } from '../core/format.ts'
import type { Reading } from '../core/model.ts'

export interface RunToAsk {
  readonly id: string
  readonly name: string
  readonly host: string | null
  readonly endedAt: Reading
  readonly training: { readonly meanStepSeconds: number | string | null } | null
}

/** It goes on; else this fails, and says which do. */
export async function findRun(agent: AgentClient, wanted: string): Promise<RunToAsk> {
  const { runs } = await agent.get<{ runs: readonly RunToAsk[] }>('/api/v1/runs')
  const byId = runs.filter(({ id }) => id === wanted)
  const found = byId.length > 0 ? byId : runs.filter(({ name }) => name === wanted)
  const running = found.filter(({ endedAt }) => endedAt === null)
  const [run] = running
  if (run && running.length === 1) return run
  const names = (list: readonly RunToAsk[]) => list.slice(0, 5).map(({ id, name }) => `${printable(name)} (${id})`)
  if (run)
    throw new Failure(`${running.length} runs that go on are called "${wanted}": give the id of one`, {
      exitCode: EXIT.usage,
      hint: `There are ${names(running).join(', ')}.`,
    })
  const open = names(runs.filter(({ endedAt }) => endedAt === null))
  const hint = open.length === 0 ? 'No run goes on at this agent.' : `Runs that go on: ${open.join(', ')}.`
  const [ended] = found
  if (ended?.endedAt != null)
    throw new Failure(`run "${wanted}" is over, since ${formatClock(ended.endedAt, Date.now())}`, { exitCode: EXIT.noSource, hint })
  throw new Failure(`there is no run "${wanted}" at ${agent.url}`, { exitCode: EXIT.noSource, hint })
}

export function wholeNumber(flag: string, given: unknown, least: number, most: number): number {
  const number = Number(given)
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new Failure(`${flag}: expected a whole number from ${least} to ${most}; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}
