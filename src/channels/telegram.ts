/** Telegram, by a bot. */
import { z } from 'zod'
import type { AlertMessage } from '../core/alert-contract.ts'
import { escapeHtml } from '../core/escape-html.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { shortText } from './content-text.ts'
import { judge, postJson, secretText, webAddress } from './http-delivery.ts'
import { redactor } from './secrets.ts'

const schema = z.strictObject({
  token: secretText,
  /** Number of a chat, or @name of a channel. */
  chat: z.union([z.string().min(1), z.number().int()]),
  /** Topic of a forum group. */
  topic: z.number().int().optional(),
  /** Another Bot API server. */
  url: webAddress.default('https://api.telegram.org'),
})

export const telegram = channelKind({
  name: 'telegram',
  schema,
  create(name, { token, chat, topic, url }, { timeoutMs }) {
    const address = `${url.replace(/\/+$/, '')}/bot${encodeURIComponent(token.trim()).replaceAll('%3A', ':')}/sendMessage`
    const redact = redactor([token.trim(), token.split(':')[1]])
    return {
      name,
      async deliver(message, signal) {
        const body = { chat_id: chat, ...(topic === undefined ? {} : { message_thread_id: topic }), ...telegramBody(message) }
        return judge(await postJson(address, body, { signal, timeoutMs, redact }))
      },
    }
  },
})

/** Telegram counts the text without its markup: 4096 characters. */
export function telegramBody(message: AlertMessage) {
  const content = contentOf(message)
  const links = content.links.map(({ label, value }) => `<a href="${escapeHtml(value)}">${label}</a>`).join(' · ')
  return {
    parse_mode: 'HTML',
    text: [`<b>${escapeHtml(content.title)}</b>`, escapeHtml(shortText(content, 3000)), links].filter((part) => part !== '').join('\n\n'),
    link_preview_options: { is_disabled: true },
    disable_notification: content.tone === 'info' || content.tone === 'resolved',
  }
}
