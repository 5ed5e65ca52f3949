/** Discord, by a webhook. Mentions are off for the whole message, and Markdown is escaped. */
import { z } from 'zod'
import type { AlertMessage } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { TONE_COLORS } from './content-html.ts'
import { shortText } from './content-text.ts'
import { judge, postJson, webAddress } from './http-delivery.ts'
import { cut, escapeMarkdown } from './plain-text.ts'
import { redactor, secretsOfUrl } from './secrets.ts'

export const discord = channelKind({
  name: 'discord',
  schema: z.strictObject({ url: webAddress }),
  create(name, { url }, { timeoutMs }) {
    const redact = redactor(secretsOfUrl(url))
    const address = new URL(url)
    // Only then does Discord report what happened to the message.
    address.searchParams.set('wait', 'true')
    return {
      name,
      deliver: async (message, signal) => judge(await postJson(address.href, discordBody(message), { signal, timeoutMs, redact })),
    }
  },
})

export function discordBody(message: AlertMessage) {
  const content = contentOf(message)
  const [only] = content.alerts.length === 1 ? content.alerts : []
  const links = content.links.map(({ label, value }) => `[${label}](${value})`)
  const body = escapeMarkdown(shortText(content, 1500))
  return {
    username: 'gpuwarden',
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title: cut(escapeMarkdown(cut(content.title, 120)), 250),
        description: [body, links.join(' · ')].filter((part) => part !== '').join('\n\n'),
        color: Number.parseInt(TONE_COLORS[content.tone].slice(1), 16),
        timestamp: new Date(message.at).toISOString(),
        fields: (only?.where ?? []).map(({ label, value }) => ({ name: label, value: escapeMarkdown(cut(value, 200)), inline: true })),
      },
    ],
  }
}
