/** The mail itself: subject, headers for filters and threads, text, HTML, and charts of the evidence. */
import { createHash } from 'node:crypto'
import type { SendMailOptions } from 'nodemailer'
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import { type ChartSpec, renderChart } from '../core/chart/chart.ts'
import { renderPng } from '../core/chart/png.ts'
import { formatValue, unitNamed } from '../core/chart/units.ts'
import { contentOf } from './content.ts'
import { htmlOf, type InlineChart } from './content-html.ts'
import { fullText, SUBJECT_PREFIX, subjectOf } from './content-text.ts'
import { letterHtml, letterText } from './letter.ts'
import { oneLine } from './plain-text.ts'

const MOST_CHARTS = 4
/** Narrow enough to read on a phone. */
const CHART_WIDTH = 440
const CHART_HEIGHT = 180

export type DrawChart = (alert: Alert, signal: AbortSignal) => Promise<Buffer>

/** Both `from` and `to` are checked addresses. */
export async function mailOf(
  message: AlertMessage,
  { from, to, signal, draw = drawChart }: { from: string; to: readonly string[]; signal: AbortSignal; draw?: DrawChart },
): Promise<SendMailOptions> {
  const content = contentOf(message)
  const { letter } = message
  const charts = new Map<number, InlineChart>()
  const attachments: NonNullable<SendMailOptions['attachments']> = []
  for (const [index, alert] of message.alerts.entries()) {
    if (alert.series === null || charts.size >= MOST_CHARTS || index >= content.alerts.length) continue
    // A mail without its chart is better than none.
    const png = await draw(alert, signal).catch(() => null)
    if (png === null) continue
    const cid = `chart-${index}@gpuwarden`
    charts.set(index, { cid, width: CHART_WIDTH, height: CHART_HEIGHT, alt: oneLine(alert.series.title, 200) })
    attachments.push({ filename: `chart-${index}.png`, content: png, cid, contentType: 'image/png', contentDisposition: 'inline' })
  }
  return {
    from: { name: 'gpuwarden', address: from },
    to: to.map((address) => ({ name: '', address })),
    subject: letter ? `${SUBJECT_PREFIX} ${oneLine(letter.subject, 200)}` : subjectOf(content),
    date: new Date(message.at),
    messageId: idOf(message.id, from),
    // The root need not exist as a mail: programs group by the references that messages share.
    references: idOf(`thread-${message.threadId}`, from),
    ...(message.isFirst ? {} : { inReplyTo: idOf(`thread-${message.threadId}`, from) }),
    ...(message.severity === 'critical' && content.tone === 'critical' ? { priority: 'high' as const } : {}),
    headers: filterHeaders(message),
    text: letter ? letterText(letter, content.links) : fullText(content),
    html: letter ? letterHtml(letter, content.links) : htmlOf(content, charts),
    attachments,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/** Keeps a valid name, so that people can find it; anything else becomes a hash. */
function idOf(text: string, from: string): string {
  const domain = /@([\w.-]+)$/.exec(from)?.[1] ?? 'gpuwarden.local'
  const local = /^[\w.-]{1,120}$/.test(text) ? text : createHash('sha256').update(text).digest('hex').slice(0, 40)
  return `<gpuwarden.${local}@${domain}>`
}

function filterHeaders(message: AlertMessage): Record<string, string> {
  const list = (values: readonly (string | null)[]) => oneLine([...new Set(values.filter((value) => value !== null))].join(', '), 200)
  const alerts = message.alerts
  return {
    'X-Gpuwarden-Kind': message.kind,
    'X-Gpuwarden-Host': oneLine(message.host, 100),
    'X-Gpuwarden-Severity': message.severity,
    'X-Gpuwarden-Status': list(alerts.map((alert) => alert.status)),
    'X-Gpuwarden-Detector': list(alerts.map((alert) => alert.finding.detector)),
    'X-Gpuwarden-Gpu': list(alerts.map((alert) => alert.gpuLabel)),
    'X-Gpuwarden-User': list(alerts.map((alert) => alert.finding.subject.user)),
    'X-Gpuwarden-Simulated': message.simulated ? 'yes' : 'no',
    'Auto-Submitted': 'auto-generated',
    'X-Auto-Response-Suppress': 'All',
  }
}

function drawChart(alert: Alert, signal: AbortSignal): Promise<Buffer> {
  return renderPng(renderChart(chartOf(alert)), CHART_WIDTH * 2, { signal })
}

export function chartOf(alert: Alert): ChartSpec {
  const series = alert.series ?? { title: '', unit: '', at: [], values: [], limit: null }
  const unit = unitNamed(series.unit)
  const title = oneLine(series.title, 120)
  return {
    width: CHART_WIDTH,
    height: CHART_HEIGHT,
    title,
    unit,
    at: series.at,
    series: [{ name: title, values: series.values, fill: true }],
    limits: series.limit === null ? [] : [{ value: series.limit, label: `limit ${formatValue(series.limit, unit)}` }],
    marks: [{ at: alert.firedAt, label: 'alert', severity: alert.finding.severity }],
  }
}
