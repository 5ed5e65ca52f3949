/** The message as plain text: in full for mail, and short for chats and phones. */
import { type AlertContent, lineOf, type MessageContent } from './content.ts'
import type { Fact } from './evidence.ts'
import { cut } from './plain-text.ts'

const MORE_LENGTH = '… and 9999 more'.length
export const SUBJECT_PREFIX = '[gpuwarden]'

export function subjectOf(content: MessageContent): string {
  return `${SUBJECT_PREFIX} ${content.title}`
}

export function fullText(content: MessageContent): string {
  const parts = [...content.notices, ...content.alerts.map(alertText)]
  for (const { kind, lines } of content.others) parts.push([`${kind} (${lines.length})`, ...lines.map((line) => `  ${line}`)].join('\n'))
  if (content.links.length > 0) parts.push(content.links.map(({ label, value }) => `${label}: ${value}`).join('\n'))
  return `${parts.join('\n\n')}\n`
}

function alertText(alert: AlertContent): string {
  const rows: Fact[] = [...alert.where, ...alert.when, { label: 'Confidence', value: alert.certainty }]
  const width = Math.max(...rows.map((row) => row.label.length)) + 2
  const lines = [`${alert.word}: ${alert.headline}`, '', ...rows.map(({ label, value }) => `${`${label}:`.padEnd(width)}${value}`)]
  if (alert.evidence.length > 0) lines.push('', 'Evidence', ...alert.evidence.map(({ label, value }) => `  ${label}: ${value}`))
  if (alert.advice.length > 0) lines.push('', 'What to do next', ...alert.advice.map((line) => `  - ${line}`))
  return lines.join('\n')
}

/** One alert where there is little room: what, who, since when, the first figures, and the first advice. */
export function shortLines(alert: AlertContent): string[] {
  const wanted = ['Process', 'Owner', 'Run', 'Since', 'Cleared', 'Expected']
  const facts = [...alert.where, ...alert.when].filter(({ label }) => wanted.includes(label))
  const evidence = alert.evidence.slice(0, 3).map(({ label, value }) => `${label} ${value}`)
  return [
    ...facts.map(({ label, value }) => `${label}: ${value}`),
    ...(evidence.length > 0 ? [evidence.join(' · ')] : []),
    ...alert.advice.slice(0, 1),
  ]
}

/** For a phone: no links (those go into their own field) and at most `most` characters. */
export function shortText(content: MessageContent, most: number): string {
  const [only] = content.alerts.length === 1 ? content.alerts : []
  if (only) return cut([...content.notices, only.headline, ...shortLines(only)].join('\n'), most)
  const lines = [
    ...content.alerts.map((alert) => lineOf({ ...alert, headline: `${alert.detector}: ${alert.headline}` })),
    ...content.others.flatMap((group) => group.lines),
  ]
  return cut([...content.notices, ...fitting(lines, most - content.notices.join('\n').length - 1)].join('\n'), most)
}

/** As many lines as fit, and how many more there are. */
function fitting(lines: readonly string[], most: number): readonly string[] {
  if (lines.join('\n').length <= most) return lines
  let room = most - MORE_LENGTH
  const shown = lines.slice(
    0,
    lines.findIndex((line) => {
      room -= line.length + 1
      return room < 0
    }),
  )
  return [...shown, `… and ${lines.length - shown.length} more`]
}
