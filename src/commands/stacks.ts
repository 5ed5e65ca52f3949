/** `gpuwarden stacks RUN`: where the ranks of a run stand, asked now. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatClock, formatDuration, printable } from '../core/format.ts'
import { stacksText } from '../core/hang/stacks-text.ts'
import type { LookState } from '../training/standstills.ts'
import { agentOf } from './agent-address.ts'
import { findRun, type RunToAsk, wholeNumber } from './find-run.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'

const LOOK_MS = 250
const MOST_WAIT_MS = 10_000

type Answer = Omit<LookState, 'id'> & { readonly id: string; readonly look: string | null }

export async function stacks(config: Config, options: Readonly<Record<string, unknown>>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  const [wanted] = args
  if (wanted === undefined || args.length > 1)
    throw new Failure('which run? Give its id or its name', { exitCode: EXIT.usage, hint: 'gpuwarden stacks train.py' })
  const rank = options.rank === undefined ? null : wholeNumber('--rank', options.rank, 0, 1_000_000)
  const agent = agentOf(config)
  const run = await findRun(agent, wanted)
  const path = `/api/v1/runs/${encodeURIComponent(run.id)}/stacks`
  const asked = await agent.post<{ look: string }>(path, {})
  let answer: Answer
  const begin = Date.now()
  do {
    await sleep(LOOK_MS)
    answer = await agent.get<Answer>(path)
  } while (answer.look === asked.look && !answer.isOver && Date.now() - begin < MOST_WAIT_MS)
  const ranks = rank === null ? answer.ranks : answer.ranks.filter((one) => one.rank === rank)
  if (ranks.length === 0) throw nobody(run, rank, answer)
  if (options.json === true) writeOut(`${JSON.stringify({ run: run.id, name: run.name, ...answer, ranks }, null, 2)}\n`)
  else writeOut(`${[...headOf(run, answer), '', ...stacksText(ranks, rank !== null || ranks.length === 1)].join('\n')}\n`)
  return EXIT.ok
}

function headOf(run: RunToAsk, { silentSince, verdict, ranks, notes }: Answer): readonly string[] {
  const name = `run ${printable(run.name)} (${run.id})`
  const now = Date.now()
  const state =
    silentSince === null ? 'makes steps' : `stands still since ${formatClock(silentSince, now)} (${formatDuration(now - silentSince)})`
  const noSdk = 'No SDK in it answers: this is what the kernel shows. Python stacks need gpuwarden run, or the SDK in the program.'
  return [
    `${name} ${state}${silentSince === null || verdict === null ? '' : `: ${printable(verdict.sentence)}`}`,
    ...notes.map((note) => `NCCL: ${printable(note)}`),
    ...(ranks.every(({ from }) => from === 'proc') ? [noSdk] : []),
  ]
}

function nobody(run: RunToAsk, rank: number | null, { ranks }: Answer): Failure {
  if (rank !== null && ranks.length > 0)
    return new Failure(`run "${run.name}" has no rank ${rank}`, {
      exitCode: EXIT.usage,
      hint: `It has ${ranks.map((one) => one.rank).join(', ')}.`,
    })
  return new Failure(`nothing is known of the processes of run "${run.name}"`, {
    exitCode: EXIT.noSource,
    hint: 'Its SDK does not answer, or is too old for it, and its processes are not on this host or have ended.',
  })
}
