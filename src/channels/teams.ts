/** Microsoft Teams, by the webhook of a workflow. Text from outside goes into text runs, which have no markup. */
import { z } from 'zod'
import type { AlertMessage, Delivery } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf, type MessageContent } from './content.ts'
import { shortText } from './content-text.ts'
import { type HttpAnswer, judge, postJson, webAddress } from './http-delivery.ts'
import { redactor, secretsOfUrl } from './secrets.ts'

export const teams = channelKind({
  name: 'teams',
  schema: z.strictObject({ url: webAddress }),
  create(name, { url }, { timeoutMs }) {
    const redact = redactor(secretsOfUrl(url))
    return {
      name,
      deliver: async (message, signal) => judgeTeams(await postJson(url, teamsBody(message), { signal, timeoutMs, redact })),
    }
  },
})

/** The old connectors answer 200 and report the failure in the text. */
export function judgeTeams(answer: HttpAnswer): Delivery {
  const hidden = /HTTP error (\d{3})/.exec(answer.text)
  return judge(answer.status === 200 && hidden ? { ...answer, status: Number(hidden[1]) } : answer)
}

const TONES = { critical: 'attention', warning: 'warning', info: 'accent', resolved: 'good' } as const

export function teamsBody(message: AlertMessage) {
  const content = contentOf(message)
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          msteams: { width: 'Full' },
          body: bodyOf(content),
          actions: content.links.map(({ label, value }) => ({ type: 'Action.OpenUrl', title: label, url: value })),
        },
      },
    ],
  }
}

function bodyOf(content: MessageContent) {
  const block = (runs: readonly object[], spacing = 'small') => ({ type: 'RichTextBlock', spacing, inlines: runs })
  const run = (text: string, style: object = {}) => ({ type: 'TextRun', text, ...style })
  const [only] = content.alerts.length === 1 ? content.alerts : []
  const facts = only ? [...only.where, ...only.when, { label: 'Confidence', value: only.certainty }, ...only.evidence] : []
  const lines = only ? [...content.notices, only.headline] : shortText(content, 6000).split('\n')
  return [
    block([run(content.title, { weight: 'bolder', size: 'medium', color: TONES[content.tone] })]),
    ...lines.filter((line) => line !== '').map((line) => block([run(line)])),
    ...facts.map(({ label, value }) => block([run(`${label}: `, { isSubtle: true }), run(value)], 'none')),
    ...(only?.advice ?? []).map((line) => block([run(`→ ${line}`)])),
  ]
}
