/** Slack, by an incoming webhook. Text from outside goes in as plain_text, where nothing is markup. */
import { z } from 'zod'
import type { AlertMessage } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf, type MessageContent } from './content.ts'
import { TONE_COLORS } from './content-html.ts'
import { shortText } from './content-text.ts'
import { judge, postJson, webAddress } from './http-delivery.ts'
import { cut, escapeSlack } from './plain-text.ts'
import { redactor, secretsOfUrl } from './secrets.ts'

export const slack = channelKind({
  name: 'slack',
  schema: z.strictObject({ url: webAddress }),
  create(name, { url }, { timeoutMs }) {
    const redact = redactor(secretsOfUrl(url))
    return {
      name,
      deliver: async (message, signal) => judge(await postJson(url, slackBody(message), { signal, timeoutMs, redact })),
    }
  },
})

export function slackBody(message: AlertMessage) {
  const content = contentOf(message)
  return {
    text: escapeSlack(content.title),
    mrkdwn: false,
    unfurl_links: false,
    attachments: [{ color: TONE_COLORS[content.tone], fallback: escapeSlack(content.title), blocks: blocksOf(content) }],
  }
}

function blocksOf(content: MessageContent) {
  const plain = (text: string) => ({ type: 'plain_text', text: cut(escapeSlack(text), 2900), emoji: false })
  const [only] = content.alerts.length === 1 ? content.alerts : []
  const body = only ? [...content.notices, only.headline].join('\n') : shortText(content, 2400)
  const facts = only ? [...only.where, ...only.when, ...only.evidence].slice(0, 10) : []
  const advice = only?.advice ?? []
  return [
    { type: 'section', text: plain(body === '' ? content.title : body) },
    ...(facts.length > 0 ? [{ type: 'section', fields: facts.map(({ label, value }) => plain(`${label}: ${value}`)) }] : []),
    ...(advice.length > 0 ? [{ type: 'section', text: plain(advice.map((line) => `• ${line}`).join('\n')) }] : []),
    // The only markup: a checked address, and a label of ours.
    ...content.links.map(({ label, value }) => ({
      type: 'context',
      elements: [{ type: 'mrkdwn', text: `<${escapeSlack(value)}|${label}>` }],
    })),
  ]
}
