/** `gpuwarden alerts`: what the running agent alerts of, and what people do about it. */
import type { Config } from '../agent/config.ts'
import type { Silence } from '../alerts/silences.ts'
import type { AgentClient } from '../core/agent-client.ts'
import type { AlertView, PastAlert } from '../core/alert-contract.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { messageAt } from '../core/forecast-words.ts'
import { formatClock, formatDuration, printable } from '../core/format.ts'
import { compareAlerts, isOpenAlert, openAlertsInWords } from '../core/known/alerts.ts'
import { userNameOrNumber } from '../core/user-name.ts'
import { agentOf } from './agent-address.ts'
import { testChannels } from './alerts-test.ts'
import { alignColumns } from './table.ts'

const MOST_RESOLVED = 5

type Options = Readonly<Record<string, unknown>>

interface Request {
  readonly config: Config
  readonly options: Options
  readonly what: readonly string[]
}

const ACTIONS: Readonly<Record<string, (request: Request) => Promise<number>>> = {
  list,
  history,
  silence,
  unsilence,
  ack: acknowledge,
  unack: unacknowledge,
  test: ({ config, options, what }) => testChannels(config, what[0] ?? null, options.json === true),
}

export async function alerts(config: Config, options: Options, args: readonly string[]): Promise<number> {
  const [name = 'list', ...what] = args
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action)
    throw new Failure(`alerts: expected one of ${Object.keys(ACTIONS).join(', ')}; got "${printable(name)}"`, { exitCode: EXIT.usage })
  return await action({ config, options, what })
}

async function list({ config, options }: Request): Promise<number> {
  const agent = agentOf(config)
  const answer = await agent.get<{ at: number; alerts: readonly AlertView[] }>('/api/v1/alerts')
  const { silences } = await agent.get<{ silences: readonly Silence[] }>('/api/v1/silences')
  return print(options, { ...answer, silences }, () => [
    ...alertLines(answer.alerts, answer.at),
    ...(silences.length === 0 ? [] : ['', ...silenceTable(silences, answer.at)]),
  ])
}

async function history({ config, options }: Request): Promise<number> {
  const answer = await agentOf(config).get<{ at: number; alerts: readonly PastAlert[] }>('/api/v1/alerts/history')
  return print(options, answer, () => (answer.alerts.length === 0 ? ['No past alerts.'] : pastTable(answer.alerts, answer.at)))
}

/** Without matchers it shows the silences in force. */
async function silence({ config, options, what }: Request): Promise<number> {
  const agent = agentOf(config)
  if (what.length === 0) {
    const answer = await agent.get<{ at: number; silences: readonly Silence[] }>('/api/v1/silences')
    return print(options, answer, () => (answer.silences.length === 0 ? ['No silences.'] : silenceTable(answer.silences, answer.at)))
  }
  const body = { matchers: what, ...ending(options), comment: String(options.comment ?? ''), by: userNameOrNumber() }
  const made = await agent.post<Silence>('/api/v1/silences', body)
  return print(options, made, () => [
    `Silenced until ${formatClock(made.until, Date.now())}: ${matchersOf(made)}`,
    `End it with: gpuwarden alerts unsilence ${made.id}`,
  ])
}

async function unsilence({ config, options, what }: Request): Promise<number> {
  const id = only(what, 'unsilence', 'the id of a silence')
  const ended = await agentOf(config).delete<{ id: string }>(`/api/v1/silences/${encodeURIComponent(id)}`)
  return print(options, ended, () => [`Silence ${printable(ended.id)} ended.`])
}

async function acknowledge({ config, options, what }: Request): Promise<number> {
  const given = only(what, 'ack', 'the fingerprint of an alert, or its first characters')
  const lasting = ending(options)
  const agent = agentOf(config)
  const view = await agent.post<AlertView>(await pathOfAck(agent, given), { ...lasting, by: userNameOrNumber() })
  const until = view.acknowledged?.until ?? Date.now()
  return print(options, view, () => [`Acknowledged until ${formatClock(until, Date.now())}: ${printable(view.finding.message)}`])
}

async function unacknowledge({ config, options, what }: Request): Promise<number> {
  const given = only(what, 'unack', 'the fingerprint of an alert, or its first characters')
  const agent = agentOf(config)
  const view = await agent.delete<AlertView>(await pathOfAck(agent, given))
  return print(options, view, () => [`No longer acknowledged: ${printable(view.finding.message)}`])
}

/** Of the one open alert whose fingerprint is this, or begins with it. */
async function pathOfAck(agent: AgentClient, given: string): Promise<string> {
  const open = (await agent.get<{ alerts: readonly AlertView[] }>('/api/v1/alerts')).alerts.filter((alert) => alert.state !== 'resolved')
  const found = open.filter((alert) => alert.fingerprint === given)
  const meant = found.length > 0 ? found : open.filter((alert) => alert.fingerprint.startsWith(given))
  const [alert] = meant
  if (!alert || meant.length > 1)
    throw new Failure(`${meant.length === 0 ? 'no open alert starts' : `${meant.length} alerts start`} with "${printable(given)}"`, {
      exitCode: EXIT.checkFailed,
      hint: `Open: ${open.map(({ fingerprint }) => printable(fingerprint)).join(', ') || 'none'}.`,
    })
  return `/api/v1/alerts/${encodeURIComponent(alert.fingerprint)}/ack`
}

function print(options: Options, answer: unknown, lines: () => readonly string[]): number {
  process.stdout.write(`${options.json === true ? JSON.stringify(answer, null, 2) : lines().join('\n')}\n`)
  return EXIT.ok
}

/** Open ones in full, resolved ones in a line each below. */
function alertLines(all: readonly AlertView[], now: number): string[] {
  const open = all.filter(isOpenAlert)
  const over = all.filter((alert) => !isOpenAlert(alert)).sort((a, b) => (b.resolvedAt ?? 0) - (a.resolvedAt ?? 0))
  const shown = over.slice(0, MOST_RESOLVED).map(({ finding, resolvedAt, simulated }) => {
    const [began, ended] = [finding.since, resolvedAt ?? finding.at]
    return [
      '',
      formatClock(ended, now),
      `after ${formatDuration(ended - began)}`,
      `${simulated ? 'SIMULATED ' : ''}${printable(finding.message)}`,
    ]
  })
  return [
    open.length === 0 ? 'No open alerts.' : `${openAlertsInWords(all)}:`,
    ...(open.length === 0 ? [] : alertTable([...open].sort(compareAlerts), now)),
    ...(shown.length === 0 ? [] : ['', 'Resolved:', ...alignColumns(shown)]),
    ...(over.length > shown.length ? [`  … and ${over.length - shown.length} more; see "gpuwarden alerts history"`] : []),
  ]
}

function alertTable(all: readonly AlertView[], now: number): string[] {
  const rows = all.map(({ state, finding, flapping, simulated, mutedBy, fingerprint }) => [
    mutedBy === null ? state : `${state} (${mutedBy})`,
    finding.severity,
    formatClock(finding.since, now),
    printable(fingerprint),
    `${simulated ? 'SIMULATED ' : ''}${flapping ? 'FLAPPING ' : ''}${printable(messageAt(finding, now))}`,
  ])
  return alignColumns([['STATE', 'SEVERITY', 'SINCE', 'FINGERPRINT', 'MESSAGE'], ...rows])
}

function pastTable(all: readonly PastAlert[], now: number): string[] {
  const rows = all.map(({ severity, since, resolvedAt, simulated, acknowledgedBy, fingerprint, message }) => [
    severity,
    formatClock(since, now),
    formatDuration(resolvedAt - since),
    printable(acknowledgedBy ?? '-'),
    printable(fingerprint),
    `${simulated ? 'SIMULATED ' : ''}${printable(message)}`,
  ])
  return alignColumns([['SEVERITY', 'BEGAN', 'LASTED', 'TAKEN BY', 'FINGERPRINT', 'MESSAGE'], ...rows])
}

function silenceTable(all: readonly Silence[], now: number): string[] {
  const rows = all.map((one) => [one.id, matchersOf(one), formatClock(one.until, now), printable(one.by), printable(one.comment)])
  return alignColumns([['SILENCE', 'MATCHERS', 'UNTIL', 'BY', 'COMMENT'], ...rows])
}

function matchersOf({ matchers }: Silence): string {
  return printable(matchers.map(({ name, operator, value }) => `${name}${operator}${value}`).join(' '))
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `--for 90m`; without it the agent's usual time. */
function ending({ for: given }: Options): { seconds?: number } {
  if (given === undefined) return {}
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(String(given)) ?? []
  const seconds = Number(amount) * (UNIT_SECONDS[unit] ?? 0)
  if (seconds > 0) return { seconds }
  throw new Failure(`--for: expected a duration such as 30m, 2h or 1d; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

function only(what: readonly string[], action: string, expected: string): string {
  const [one] = what
  if (one !== undefined && what.length === 1) return one
  throw new Failure(`alerts ${action}: expected ${expected}`, { exitCode: EXIT.usage, hint: '"gpuwarden alerts list" shows them.' })
}
