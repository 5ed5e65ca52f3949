/** `gpuwarden usage`: who held the GPUs for how long, from the running agent, a log folder or a recording. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../agent/config.ts'
import { openForReading } from '../agent/detect-recording.ts'
import { countRecording } from '../agent/usage-recording.ts'
import { letterText } from '../channels/letter.ts'
import { AgentClient, AgentFault } from '../core/agent-client.ts'
import { absent, stat } from '../core/disk.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { printable } from '../core/format.ts'
import { parseTime, TIME_HINT } from '../core/time-expression.ts'
import { recordedRuns } from '../training/run-files.ts'
import { usageCsv } from '../usage/csv.ts'
import { readRows } from '../usage/ledger.ts'
import { usageLetters } from '../usage/letters.ts'
import { duePeriod } from '../usage/period.ts'
import { type PriceOf, priceList } from '../usage/prices.ts'
import type { UsageRow } from '../usage/row.ts'
import { GROUPINGS, type Grouping, type SummaryQuery, summarize, type UsageSummary } from '../usage/summary.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { findLocalAgent } from './top-agent.ts'
import { usageText } from './usage-text.ts'

type Options = Readonly<Record<string, unknown>>
type Question = Omit<SummaryQuery, 'priceOf'>

const LONG_LIMIT_MS = 60_000
const MONTH_MS = 30 * 86_400_000

export async function usage(config: Config, options: Options, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  if (args.length > 0)
    throw new Failure(`usage: expected options only; got "${printable(args[0] ?? '')}"`, {
      exitCode: EXIT.usage,
      hint: '"gpuwarden usage --help" shows examples.',
    })
  if (options.json === true && options.csv === true)
    throw new Failure('usage: expected --json or --csv; got both', { exitCode: EXIT.usage })
  const question = readQuestion(options, Date.now())
  if (options.mailPreview === true) return previewMail(config, options, question)
  const { summary, place } = await ask(config, options, question)
  if (options.json === true) writeOut(`${JSON.stringify(summary, null, 2)}\n`)
  else if (options.csv === true) writeOut(usageCsv(summary))
  else writeOut(`${usageText(summary, place).join('\n')}\n`)
  return EXIT.ok
}

/** The mails of the last due time, or of the time that is asked for, as they would be sent. */
async function previewMail(config: Config, options: Options, question: Question): Promise<number> {
  const { values } = config
  const every = values['usage.mail'] === 'off' ? 'weekly' : values['usage.mail']
  const due = duePeriod(every, values['usage.mail_hour'], Date.now())
  const period = options.from === undefined && options.to === undefined ? due : { ...question, name: 'preview' }
  const asked = { ...question, from: period.from, to: period.to, user: null }
  const { summary: byUser } = await ask(config, options, { ...asked, by: 'user' })
  const { summary: byGpu } = await ask(config, options, { ...asked, by: 'gpu' })
  const { user } = question
  const owners =
    user === null ? values['alerts.owners'] : { [user]: values['alerts.owners'][user] ?? 'nobody: no address in alerts.owners' }
  const letters = usageLetters(byUser, byGpu, { host: hostname(), period, to: values['usage.mail_to'], owners })
  const shown = user === null ? letters : letters.slice(1)
  if (shown.length === 0) writeOut('Nothing was counted in this time: no mail would be sent.\n')
  for (const letter of shown) {
    const to = letter.to.join(', ') || values['email.to'].join(', ') || 'the recipients of the mail channel'
    writeOut(
      `To: ${printable(to)}\nSubject: ${printable(letter.subject)}\n\n${letterText(letter, [])}${letter === shown.at(-1) ? '' : '\n----\n\n'}`,
    )
  }
  return EXIT.ok
}

function readQuestion(options: Options, now: number): Question {
  const by = String(options.by ?? 'user')
  if (!(GROUPINGS as readonly string[]).includes(by))
    throw new Failure(`--by: expected one of ${GROUPINGS.join(', ')}; got "${printable(by)}"`, { exitCode: EXIT.usage })
  const to = readMoment('--to', options.to ?? 'now', now)
  const isRecording = typeof options.fromRecording === 'string'
  const from = options.from === undefined ? (isRecording ? 0 : to - MONTH_MS) : readMoment('--from', options.from, now)
  if (from >= to) throw new Failure('--from must be before --to', { exitCode: EXIT.usage })
  const user = options.user === undefined ? null : String(options.user)
  return { by: by as Grouping, from, to, user, simulated: options.simulated === true ? true : null }
}

function readMoment(flag: string, given: unknown, now: number): number {
  const at = parseTime(String(given), now)
  if (typeof at === 'number') return at
  throw new Failure(`${flag}: ${printable(at)}`, { exitCode: EXIT.usage, hint: TIME_HINT })
}

interface Asked {
  readonly summary: UsageSummary
  /** Where the figures are from. */
  readonly place: string
}

async function ask(config: Config, options: Options, question: Question): Promise<Asked> {
  const priceOf = priceList(config.values)
  if (typeof options.fromRecording === 'string') return askRecording(config, options.fromRecording, question, priceOf)
  if (config.origins['log.dir'].from !== 'flag') {
    const found = await askAgent(config, question)
    if (found) return found
  }
  const dir = config.values['log.dir']
  const folder = join(dir, 'usage')
  if ((await stat(folder).catch(absent)) === null)
    throw new Failure(`${dir}: no usage was counted there, and no agent answers`, {
      exitCode: EXIT.noSource,
      hint: 'Start "gpuwarden monitor", give the log folder of an agent with --log-dir, or count old logs with --from-recording DIR.',
    })
  return { summary: await summarize(readRows(folder, null, question.from, question.to), { ...question, priceOf }), place: dir }
}

/** null: no agent that counts answers. */
async function askAgent(config: Config, { by, from, to, user, simulated }: Question): Promise<Asked | null> {
  const { address } = await findLocalAgent(config)
  if (address === null) return null
  const query = new URLSearchParams({ by, from: String(Math.round(from)), to: String(Math.round(to)) })
  if (user !== null) query.set('user', user)
  if (simulated !== null) query.set('simulated', simulated ? 'yes' : 'no')
  try {
    const summary = await new AgentClient(address, LONG_LIMIT_MS).get<UsageSummary>(`/api/v1/usage?${query}`)
    return { summary, place: `the agent at ${address.url}` }
  } catch (error) {
    if (!(error instanceof AgentFault)) throw error
    process.stderr.write(`gpuwarden: ${error.message.replace(/\.$/, '')}; reading the log folder instead\n`)
    return null
  }
}

async function askRecording({ values }: Config, path: string, question: Question, priceOf: PriceOf): Promise<Asked> {
  const recording = await openForReading(path)
  const rows = await countRecording(recording, await recordedRuns(path), values.interval * 1000)
  const isIn = ({ hour }: UsageRow) => hour + 3_600_000 > question.from && hour < question.to
  async function* days() {
    yield rows.filter(isIn)
  }
  const { firstAt, lastAt } = recording.stats()
  const span = { from: Math.max(question.from, firstAt ?? question.from), to: Math.min(question.to, lastAt ?? question.to) }
  return { summary: { ...(await summarize(days(), { ...question, priceOf })), ...span }, place: path }
}
