/** Every kind of channel, and how the configured ones are opened. A new kind is one file and one line here. */
import { EXIT, Failure } from '../core/failure.ts'
import type { Channel } from '../core/kinds.ts'
import { alertmanager } from './alertmanager.ts'
import { type ChannelEnv, type ChannelKind, describeIssue } from './channel-kind.ts'
import { command } from './command.ts'
import { discord } from './discord.ts'
import { email } from './email.ts'
import { ntfy } from './ntfy.ts'
import { pagerduty } from './pagerduty.ts'
import type { PushSubscriptions } from './push-subscriptions.ts'
import { pushover } from './pushover.ts'
import type { ChannelValues } from './settings.ts'
import { slack } from './slack.ts'
import { teams } from './teams.ts'
import { telegram } from './telegram.ts'
import { webhook } from './webhook.ts'
import { openWebPush, webpush } from './webpush.ts'

export const CHANNEL_KINDS: readonly ChannelKind[] = [
  email,
  slack,
  discord,
  telegram,
  teams,
  ntfy,
  pushover,
  pagerduty,
  alertmanager,
  webhook,
  webpush,
  command,
]

export interface OpenedChannels {
  readonly channels: readonly Channel[]
  /** Configured by this name, and why nothing goes there. */
  readonly unusable: ReadonlyMap<string, string>
  /** Switched off by name. */
  readonly disabled: readonly string[]
  /** What keeps a configured channel from working, in plain words without secrets. Watching goes on. */
  readonly problems: readonly string[]
}

export interface ChannelSurroundings extends ChannelEnv {
  /** Shared with the server, which adds and removes browsers; with it there is a channel `webpush` without any configuration. */
  readonly push?: PushSubscriptions
}

/** Refuses an option that can never work, by its name: a wrong configuration stops the start. */
export function checkChannels({ channels }: ChannelValues): void {
  for (const [name, { type, enabled: _, ...options }] of Object.entries(channels)) {
    const checked = CHANNEL_KINDS.find((kind) => kind.name === type)?.written.safeParse(options)
    if (checked?.success !== false) continue
    throw new Failure(`channels.${describeIssue(name, checked.error.issues[0])}`, {
      exitCode: EXIT.usage,
      hint: `The options of type ${type} are in docs/channels.md.`,
    })
  }
}

/** Throws as checkChannels does; what only fails here and now is a problem of one channel. */
export function openChannels(values: ChannelValues, surroundings: ChannelSurroundings): OpenedChannels {
  checkChannels(values)
  const channels: Channel[] = []
  const unusable = new Map<string, string>()
  const disabled: string[] = []
  const problems: string[] = []
  const attempt = (name: string, open: () => Channel) => {
    try {
      channels.push(open())
    } catch (error) {
      unusable.set(name, (error as Error).message)
      problems.push(`channel ${name} is not usable: ${(error as Error).message}`)
    }
  }
  const mail = mailDefaults(values)
  if (values['email.server'] !== null && !Object.hasOwn(values.channels, 'email')) {
    if (values['email.to'].length === 0) problems.push('TO_EMAILS (email.to) is empty: only owners of processes get mails')
    attempt('email', () => email.open('email', mail, surroundings))
  } else if (values['email.server'] === null && values['email.to'].length > 0)
    problems.push('SMTP_SERVER (email.server) is not set: no mail will be sent to the addresses in TO_EMAILS (email.to)')
  for (const [name, { type, enabled, ...options }] of Object.entries(values.channels)) {
    if (enabled === false) disabled.push(name)
    else attempt(name, () => openOne(name, type, type === 'email' ? { ...mail, ...options } : options, surroundings, values))
  }
  const { push } = surroundings
  if (push && !Object.values(values.channels).some(({ type }) => type === 'webpush'))
    attempt('webpush', () => openWebPush('webpush', pushOptions({}, values), push, surroundings.timeoutMs))
  return { channels, unusable, disabled, problems }
}

function openOne(name: string, type: string, options: object, surroundings: ChannelSurroundings, values: ChannelValues): Channel {
  if (type === 'webpush' && surroundings.push)
    return openWebPush(name, pushOptions(options, values), surroundings.push, surroundings.timeoutMs)
  const kind = CHANNEL_KINDS.find((known) => known.name === type)
  if (!kind) throw new Error(`${name}: there is no kind "${type}"`)
  return kind.open(name, options, surroundings)
}

function pushOptions(options: object, values: ChannelValues): Parameters<typeof openWebPush>[1] {
  const from = values['email.from']
  return webpush.schema.parse({ ...(from === null ? {} : { contact: `mailto:${from}` }), ...options }) as Parameters<typeof openWebPush>[1]
}

function mailDefaults(values: ChannelValues): object {
  const from = values['email.from']
  return {
    ...(values['email.server'] === null ? {} : { server: values['email.server'] }),
    port: values['email.port'],
    ...(from === null ? {} : { from }),
    to: values['email.to'],
    user: values['email.user'],
    password: values['email.password'],
    tls: values['email.tls'],
    tls_verify: values['email.tls_verify'],
  }
}
