/** `gpuwarden compare A B`: which of two runs is faster, and why. */
import { statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import type { Config } from '../agent/config.ts'
import { AgentClient } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { toJson } from '../core/json-text.ts'
import { VERSION } from '../core/version.ts'
import { compareRuns } from '../report/comparison.ts'
import { comparisonHtml, comparisonText } from '../report/comparison-text.ts'
import type { Summary } from '../report/training-summary.ts'
import { recordedRuns } from '../training/run-files.ts'
import { type AgentSettings, agentAddress } from './agent-address.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { findSubject, readPrice, reportOf } from './report.ts'

/** A report is made by a process of its own. */
const REPORT_MS = 90_000
const ANSWER_MS = 2000

export async function compare(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  const [first, second] = args
  if (first === undefined || second === undefined || args.length > 2)
    throw new Failure(`expected two runs; got ${args.length}`, {
      exitCode: EXIT.usage,
      hint: 'Give two of: the id or name of a run, a log folder (its latest run), a file of "gpuwarden report --json".',
    })
  const price = readPrice(options.pricePerHour)
  const [a, b] = [await summaryOf(config, first, price), await summaryOf(config, second, price)]
  if (a.runId !== null && a.runId === b.runId)
    throw new Failure(`"${first}" and "${second}" are the same run (${a.runId})`, {
      exitCode: EXIT.usage,
      hint: 'A name means the latest run of that name: give the id of the other one, from "gpuwarden report" of the folder or the page.',
    })
  for (const [given, { training }] of [
    [first, a],
    [second, b],
  ] as const)
    if (training === null || training.steps === 0)
      throw new Failure(`"${given}" has no training steps: there is nothing to compare`, {
        exitCode: EXIT.noSource,
        hint: 'Steps come from "gpuwarden run -- python train.py", from an SDK or with --parse-output.',
      })
  const comparison = compareRuns(a, b)
  if (typeof options.html === 'string') {
    const file = options.html
    await writeFile(file, comparisonHtml(comparison, VERSION, Date.now())).catch((cause: Error) => {
      throw new Failure(`the comparison cannot be written to ${file}: ${cause.message}`, { exitCode: EXIT.usage, cause })
    })
    process.stderr.write(`gpuwarden: wrote ${file}\n`)
  }
  if (options.json === true) writeOut(`${toJson(comparison)}\n`)
  if (options.text === true || (options.json !== true && options.html === undefined)) writeOut(`${comparisonText(comparison)}\n`)
  return EXIT.ok
}

async function summaryOf(config: Config, given: string, price: number | null): Promise<Summary> {
  const entry = statSync(given, { throwIfNoEntry: false })
  if (entry?.isFile() && given.endsWith('.json')) return readSummary(given)
  if (entry?.isDirectory()) {
    const run = (await recordedRuns(given)).at(-1) ?? null
    return (await reportOf(given, run, price)).summary
  }
  const told = await askAgent(config.values, given)
  if (told !== null) return told
  const { path, run } = await findSubject(given, config.values['log.dir'])
  return (await reportOf(path, run, price)).summary
}

/** null: no agent answers, or it does not know the run. */
async function askAgent(settings: AgentSettings, given: string): Promise<Summary | null> {
  if (settings['server.port'] === 0) return null
  const agent = new AgentClient(agentAddress(settings, false), ANSWER_MS)
  if ((await agent.version()) === null) return null
  const answer = await agent.tryGet('/api/v1/runs')
  if (answer.status !== 200) return null
  const { runs } = answer.body as { readonly runs: readonly { readonly id: string; readonly name: string }[] }
  const known = runs.find(({ id }) => id === given) ?? runs.find(({ name }) => name === given)
  if (!known) return null
  const report = await agent.tryGet(`/api/v1/runs/${encodeURIComponent(known.id)}/report.json`, REPORT_MS)
  return report.status === 200 && isSummary(report.body) ? report.body : null
}

async function readSummary(file: string): Promise<Summary> {
  let value: unknown
  try {
    value = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw new Failure(`${file} cannot be read: ${(cause as Error).message}`, { exitCode: EXIT.noSource, cause })
  }
  if (isSummary(value)) return value
  throw new Failure(`${file} is not a report`, { exitCode: EXIT.noSource, hint: 'Write one with "gpuwarden report RUN --json > FILE".' })
}

function isSummary(value: unknown): value is Summary {
  const told = value as Partial<Summary> | null
  return (
    typeof told === 'object' &&
    told !== null &&
    typeof told.title === 'string' &&
    'training' in told &&
    'figures' in told &&
    Array.isArray(told.gpus)
  )
}
