/** Every kind of channel, and how the configured ones are opened. A new kind is one file and one row here. */
import type { Channel } from '../core/alert-contract.ts'
import { EXIT, Failure } from '../core/failure.ts'
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
  /** Configured channels by name, and why nothing is sent there. */
  readonly unusable: ReadonlyMap<string, string>
  readonly disabled: readonly string[]
  /** What keeps a configured channel from working, without secrets. Watching continues. */
  readonly problems: readonly string[]
}

export interface ChannelSurroundings extends ChannelEnv {
  /** Shared with the server, which adds and removes browsers. With it there is always a channel `webpush`. null: it cannot be kept. */
  readonly push?: PushSubscriptions | null
}

/** Refuses an unknown type, and an option that can never work, by name: a wrong configuration stops the start. */
export function checkChannels({ channels }: ChannelValues): void {
  for (const [name, { type, enabled: _, ...options }] of Object.entries(channels)) {
    const kind = CHANNEL_KINDS.find((known) => known.name === type)
    const checked = kind?.written.safeParse(options)
    if (checked?.success) continue
    const issue = checked
      ? describeIssue(name, checked.error.issues[0])
      : `${name}.type: expected one of ${CHANNEL_KINDS.map((known) => known.name).join(', ')}`
    throw new Failure(`channels.${issue}`, {
      exitCode: EXIT.usage,
      hint: kind ? `The options of type ${type} are in docs/channels.md.` : 'What each type is for is in docs/channels.md.',
    })
  }
}

/** Throws as checkChannels does; what fails only at this moment is a problem of one channel. */
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
  if (values['email.server'] !== null && !Object.hasOwn(values.channels, email.name)) {
    if (values['email.to'].length === 0) problems.push('TO_EMAILS (email.to) is empty: only owners of processes get mail')
    attempt(email.name, () => email.open(email.name, mail, surroundings))
  } else if (values['email.server'] === null && values['email.to'].length > 0)
    problems.push('SMTP_SERVER (email.server) is not set: no mail will be sent to the addresses in TO_EMAILS (email.to)')
  for (const [name, { type, enabled, ...options }] of Object.entries(values.channels)) {
    if (enabled === false) disabled.push(name)
    else attempt(name, () => openOne(name, type, type === email.name ? { ...mail, ...options } : options, surroundings, values))
  }
  const { push } = surroundings
  if (push && !Object.values(values.channels).some(({ type }) => type === webpush.name))
    attempt(webpush.name, () => openWebPush(webpush.name, pushOptions({}, values), push, surroundings.timeoutMs))
  if (push === null && !channels.some(({ name }) => name === webpush.name))
    unusable.set(webpush.name, 'it needs a folder for its keys: set alerts.dir, or turn the log on')
  return { channels, unusable, disabled, problems }
}

function openOne(name: string, type: string, options: object, surroundings: ChannelSurroundings, values: ChannelValues): Channel {
  if (type === webpush.name && surroundings.push)
    return openWebPush(name, pushOptions(options, values), surroundings.push, surroundings.timeoutMs)
  const kind = CHANNEL_KINDS.find((known) => known.name === type)
  if (!kind) throw new Error(`${name}: unknown type "${type}"`)
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
