/** What a message says, before it is put into any form: what, where, since when, evidence, how sure, what to do. All of it harmless single lines. */
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import { messageAt } from '../core/forecast-words.ts'
import { formatAge, formatDuration, formatPercent } from '../core/format.ts'
import type { Severity } from '../core/model.ts'
import { evidenceFacts, type Fact, moment } from './evidence.ts'
import { cut, oneLine, safeLink } from './plain-text.ts'

export interface AlertContent {
  /** `CRITICAL`, `STILL CRITICAL`, `RESOLVED`, `LATE CRITICAL` */
  readonly word: string
  /** What colors it: a resolved one is no longer bad. */
  readonly tone: Severity | 'resolved'
  readonly detector: string
  readonly place: string
  readonly headline: string
  readonly where: readonly Fact[]
  readonly when: readonly Fact[]
  readonly evidence: readonly Fact[]
  readonly certainty: string
  readonly advice: readonly string[]
}

export interface MessageContent {
  /** `CRITICAL box GPU 0: memory leak: …`, short, without the prefix. */
  readonly title: string
  readonly tone: AlertContent['tone']
  /** What the reader must know of the message itself: simulated, delayed, more held back. */
  readonly notices: readonly string[]
  /** In detail. */
  readonly alerts: readonly AlertContent[]
  /** Beyond those, one line each, by kind. */
  readonly others: readonly { readonly kind: string; readonly lines: readonly string[] }[]
  readonly links: readonly Fact[]
}

const MOST_IN_DETAIL = 20
const TITLE_LENGTH = 140

export function contentOf(message: AlertMessage): MessageContent {
  const host = oneLine(message.host, 80)
  const all = message.alerts.map((alert) => alertContent(alert, message))
  const title = `${message.simulated ? 'SIMULATED ' : ''}${titleOf(message, host, all)}`
  return {
    title: cut(title, TITLE_LENGTH),
    tone: toneOf(message, all),
    notices: noticesOf(message),
    alerts: all.slice(0, MOST_IN_DETAIL),
    others: byKind(all.slice(MOST_IN_DETAIL)),
    links: linksOf(message),
  }
}

function byKind(alerts: readonly AlertContent[]): MessageContent['others'] {
  const kinds = new Map<string, string[]>()
  for (const alert of alerts) kinds.set(alert.detector, [...(kinds.get(alert.detector) ?? []), lineOf(alert)])
  return Array.from(kinds, ([kind, lines]) => ({ kind, lines }))
}

/** `CRITICAL GPU 0: …` */
export function lineOf({ word, place, headline }: AlertContent): string {
  return `${word}${place === '' ? '' : ` ${place}`}: ${headline}`
}

function titleOf(message: AlertMessage, host: string, alerts: readonly AlertContent[]): string {
  if (message.kind === 'test') return `TEST ${host}: alerts arrive here`
  if (message.kind === 'heartbeat') return `ALIVE ${host}: gpuwarden is watching`
  const [first] = alerts
  if (!first) return `${message.severity.toUpperCase()} ${host}`
  if (message.alerts.length === 1) {
    const place = first.place === '' ? host : `${host} ${first.place}`
    return `${first.word} ${place}: ${first.detector}: ${first.headline}`
  }
  const words = new Set(alerts.map((alert) => alert.word))
  const word = words.size === 1 ? first.word : message.severity.toUpperCase()
  const kinds = [...new Set(alerts.map((alert) => alert.detector))].slice(0, 4).join(', ')
  const places = [...new Set(alerts.map((alert) => alert.place))].filter((place) => place !== '')
  return `${word} ${host}: ${message.alerts.length} alerts (${kinds}${places.length > 0 ? `; ${places.slice(0, 8).join(', ')}` : ''})`
}

function toneOf(message: AlertMessage, alerts: readonly AlertContent[]): AlertContent['tone'] {
  if (message.kind !== 'alerts') return 'info'
  return alerts.length > 0 && alerts.every((alert) => alert.tone === 'resolved') ? 'resolved' : message.severity
}

function noticesOf(message: AlertMessage): string[] {
  const notices: string[] = []
  if (message.simulated) notices.push('SIMULATED: these figures come from a simulation or a recording, not from live hardware.')
  if (message.kind === 'test') notices.push('This is a test. Nothing is wrong. Alerts of this host will look like this.')
  if (message.kind === 'heartbeat')
    notices.push(`gpuwarden on ${oneLine(message.host, 80)} is running. If these messages stop, check that host.`)
  if (message.delayedMs >= 1000)
    notices.push(`Delayed by ${formatDuration(message.delayedMs)}: this message could not be delivered earlier.`)
  if (message.suppressed > 0) {
    const where = message.links.dashboard === null ? '' : ' The link to the web UI shows those that are still open.'
    notices.push(`${message.suppressed} more alerts were held back to limit the number of messages.${where}`)
  }
  return notices
}

function linksOf({ links }: AlertMessage): Fact[] {
  const named = [
    { label: 'Web UI', value: safeLink(links.dashboard) },
    { label: 'Silence', value: safeLink(links.silence) },
  ]
  return named.flatMap(({ label, value }) => (value === null ? [] : [{ label, value }]))
}

function alertContent(alert: Alert, message: AlertMessage): AlertContent {
  const { finding, status } = alert
  const severity = finding.severity.toUpperCase()
  const word = { firing: severity, repeat: `STILL ${severity}`, resolved: 'RESOLVED', late: `LATE ${severity}` }[status]
  const isOver = status === 'resolved' || status === 'late'
  const now = message.at + message.delayedMs
  return {
    word,
    tone: isOver ? 'resolved' : finding.severity,
    detector: oneLine(finding.detector, 60).replaceAll('_', ' '),
    place: placeOf(alert),
    headline: oneLine(messageAt(finding, now), 400),
    where: whereFacts(alert, message),
    when: whenFacts(alert, now),
    evidence: evidenceFacts(finding.evidence, now),
    certainty: certaintyOf(alert),
    advice: isOver ? [] : finding.advice.slice(0, 8).map((line) => oneLine(line, 400)),
  }
}

function placeOf({ gpuLabel, runName, finding }: Alert): string {
  const label = gpuLabel ?? finding.subject.gpuIndex
  if (label !== null) return `GPU ${oneLine(String(label), 20)}`
  return finding.subject.run === null ? '' : `run ${oneLine(runName ?? finding.subject.run, 60)}`
}

/** Without the command line: people put passwords there. */
function whereFacts({ finding, gpuLabel, gpuName, runName, process }: Alert, message: AlertMessage): Fact[] {
  const { subject } = finding
  const info = process?.info ?? null
  const pid = subject.pid ?? process?.pid ?? null
  const label = gpuLabel ?? (subject.gpuIndex === null ? null : String(subject.gpuIndex))
  const gpu = [label, gpuName, subject.gpu === null ? null : `(${subject.gpu})`].filter((part) => part !== null && part !== '')
  const program = [pid === null ? null : String(pid), info?.name ?? null, info?.executable ? `(${info.executable})` : null]
  const facts: [string, string | null][] = [
    ['Host', subject.host ?? message.host],
    ['GPU', gpu.length === 0 ? null : gpu.join(' ')],
    ['Process', pid === null ? null : program.filter((part) => part !== null).join(' ')],
    ['Owner', subject.user ?? info?.user ?? null],
    ['Container', info?.container ?? null],
    ['Pod', info?.pod ?? null],
    ['Slurm job', info?.slurmJob ?? null],
    ['Run', subject.run === null ? null : `${runName ?? subject.run}${subject.rank === null ? '' : ` rank ${subject.rank}`}`],
  ]
  return facts.flatMap(([name, value]) => (value === null || value === '' ? [] : [{ label: name, value: oneLine(value, 200) }]))
}

function whenFacts({ finding, firedAt, resolvedAt, status }: Alert, now: number): Fact[] {
  const facts: Fact[] = [{ label: 'Since', value: moment(finding.since, now) }]
  if (Math.abs(firedAt - finding.since) >= 1000) facts.push({ label: 'Alerted', value: moment(firedAt, now) })
  if (resolvedAt !== null)
    facts.push({ label: 'Cleared', value: `${moment(resolvedAt, now)}, after ${formatDuration(resolvedAt - finding.since)}` })
  if (status === 'late') facts.push({ label: 'Note', value: 'it fired and cleared before this message could be delivered' })
  if (finding.predictedAt !== null && resolvedAt === null) {
    const { predictedEarliestAt: early, predictedLatestAt: late } = finding
    const range = early === null || late === null ? '' : `, at the earliest ${ahead(early, now)}, at the latest ${ahead(late, now)}`
    facts.push({ label: 'Expected', value: moment(finding.predictedAt, now) + range })
  }
  return facts
}

function ahead(at: number, now: number): string {
  return at <= now ? 'now' : `in ${formatAge(at - now)}`
}

function certaintyOf({ finding }: Alert): string {
  const percent = formatPercent(Math.min(1, Math.max(0, finding.confidence)))
  return finding.riskLevel === null ? percent : `${percent}, risk ${finding.riskLevel}`
}
