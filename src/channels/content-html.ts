/** The message as HTML that mail programs show: tables and inline styles only, no scripts, nothing loaded from elsewhere. */
import { escapeHtml } from '../core/escape-html.ts'
import type { AlertContent, MessageContent } from './content.ts'
import type { Fact } from './evidence.ts'

export const TONE_COLORS: Readonly<Record<AlertContent['tone'], string>> = {
  critical: '#b3261e',
  warning: '#9a5b00',
  info: '#1f5f99',
  resolved: '#1c6b3f',
}

export interface InlineChart {
  /** Content-ID of the attached picture. */
  readonly cid: string
  readonly width: number
  readonly height: number
  readonly alt: string
}

const FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
const MUTED = 'color:#56616d'

/** `charts` by position of the alert in the content. */
export function htmlOf(content: MessageContent, charts: ReadonlyMap<number, InlineChart>): string {
  const parts = [
    ...content.notices.map(notice),
    ...content.alerts.map((alert, index) => card(alert, charts.get(index))),
    ...content.others.map(({ kind, lines }) => list(kind, lines)),
  ]
  return pageOf(content.title, parts, content.links)
}

/** `parts`: rows of the outer table. */
export function pageOf(title: string, parts: readonly string[], links: readonly Fact[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light"><title>${escapeHtml(title)}</title></head>
<body style="margin:0;padding:16px;background:#f2f4f6;${FONT};font-size:14px;line-height:1.45;color:#1c2530">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:640px;margin:0 auto">
${parts.join('\n')}
${links.length > 0 ? `<tr><td style="padding:4px 0 12px">${links.map(button).join(' ')}</td></tr>` : ''}
<tr><td style="padding:8px 2px;font-size:12px;${MUTED}">Sent by gpuwarden. To filter these mails, use the subject prefix [gpuwarden] or the X-Gpuwarden-* headers.</td></tr>
</table>
</body></html>
`
}

function notice(text: string): string {
  return `<tr><td style="padding:10px 14px;background:#fff6dd;border:1px solid #e6cf8a;border-radius:6px">${escapeHtml(text)}</td></tr><tr><td style="height:12px"></td></tr>`
}

function card(alert: AlertContent, chart: InlineChart | undefined): string {
  const color = TONE_COLORS[alert.tone]
  const place = [alert.place, alert.detector].filter((part) => part !== '').join(' · ')
  return `<tr><td style="background:#ffffff;border:1px solid #dde2e7;border-top:4px solid ${color};border-radius:6px;padding:16px 18px">
<div style="font-size:12px;font-weight:700;letter-spacing:.04em;color:${color}">${escapeHtml(alert.word)}<span style="font-weight:400;letter-spacing:0;${MUTED}"> &nbsp;${escapeHtml(place)}</span></div>
<div style="font-size:18px;line-height:1.3;font-weight:600;margin:4px 0 12px">${escapeHtml(alert.headline)}</div>
${chart ? picture(chart) : ''}${rows([...alert.where, ...alert.when, { label: 'Confidence', value: alert.certainty }])}
${alert.evidence.length > 0 ? heading('Evidence') + rows(alert.evidence) : ''}
${alert.advice.length > 0 ? `${heading('What to do next')}<ul style="margin:4px 0 0;padding-left:20px">${alert.advice.map((line) => `<li style="margin:2px 0">${escapeHtml(line)}</li>`).join('')}</ul>` : ''}
</td></tr><tr><td style="height:12px"></td></tr>`
}

function list(kind: string, lines: readonly string[]): string {
  return `<tr><td style="background:#ffffff;border:1px solid #dde2e7;border-radius:6px;padding:12px 18px">${heading(`${escapeHtml(kind)} (${lines.length})`)}<ul style="margin:4px 0 0;padding-left:20px">${lines.map((line) => `<li style="margin:2px 0">${escapeHtml(line)}</li>`).join('')}</ul></td></tr><tr><td style="height:12px"></td></tr>`
}

function picture({ cid, width, height, alt }: InlineChart): string {
  return `<img src="cid:${escapeHtml(cid)}" width="${width}" height="${height}" alt="${escapeHtml(alt)}" style="display:block;width:100%;max-width:${width}px;height:auto;margin:0 0 12px">\n`
}

function heading(text: string): string {
  return `<div style="font-size:13px;font-weight:600;margin:14px 0 4px">${text}</div>`
}

function rows(facts: readonly Fact[]): string {
  const cells = facts.map(
    ({ label, value }) =>
      `<tr><td style="padding:2px 14px 2px 0;white-space:nowrap;vertical-align:top;${MUTED}">${escapeHtml(label)}</td><td style="padding:2px 0;vertical-align:top;word-break:break-word">${escapeHtml(value)}</td></tr>`,
  )
  return `<table role="presentation" cellpadding="0" cellspacing="0" style="font-size:14px;line-height:1.45">${cells.join('')}</table>`
}

function button({ label, value }: Fact): string {
  return `<a href="${escapeHtml(value)}" style="display:inline-block;padding:8px 14px;margin-right:6px;background:#1f5f99;color:#ffffff;text-decoration:none;border-radius:6px;font-weight:600">${escapeHtml(label)}</a>`
}
