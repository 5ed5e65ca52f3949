/** The settings of the channels: e-mail has its own keys and variables, all others are in one map. */
import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'
import { describeIssue } from './channel-kind.ts'
import { mailAddress } from './mail-address.ts'

export const emailSettings = {
  'email.server': setting(z.string().min(1).nullable(), null, 'SMTP server for the alerts', { env: 'SMTP_SERVER' }),
  'email.port': setting(
    z.number().int().min(1).max(65_535).nullable(),
    null,
    'its port: 587 with STARTTLS (default), 465 with TLS, 25 or 1025 for a local relay',
    { env: 'SMTP_PORT' },
  ),
  'email.from': setting(mailAddress.nullable(), null, 'sender address of the alerts', { env: 'EMAIL_ADDRESS' }),
  'email.password': setting(z.string().nullable(), null, 'password to log in with', { env: 'EMAIL_PASSWORD', secret: true }),
  'email.to': setting(z.array(mailAddress), [], 'who gets the alerts: a comma-separated list', { env: 'TO_EMAILS' }),
  'email.user': setting(z.string().min(1).nullable(), null, 'login name, if it is not the address'),
  'email.tls': setting<'auto' | 'starttls' | 'implicit' | 'none'>(
    z.enum(['auto', 'starttls', 'implicit', 'none']),
    'auto',
    'how the connection is protected: auto (by port, and always before a password crosses a network), starttls, implicit or none',
  ),
  'email.tls_verify': setting(z.boolean(), true, 'verify the certificate of the mail server'),
} satisfies Settings

/** One entry of `channels`, as written: openChannels checks the options of its type. */
export interface ChannelEntry {
  readonly type: string
  readonly enabled?: boolean | undefined
  readonly [option: string]: unknown
}

/** The type and its options are checked where the kinds are loaded: every command reads the settings, few need a channel. */
const entry = z.looseObject({ type: z.string(), enabled: z.boolean().optional() })

/** The whole map in one message, because it is one setting: `team.type: expected …`. Values are never repeated. */
const channelMap = z.preprocess(
  jsonOf,
  z
    .record(z.string(), z.unknown(), { error: 'expected channels by name, such as team: { type: slack, url: … }' })
    .transform((map, context) => {
      const entries: Record<string, ChannelEntry> = {}
      for (const [name, value] of Object.entries(map)) {
        const parsed = entry.safeParse(value)
        if (!/^[\w-]{1,40}$/.test(name))
          context.addIssue({ code: 'custom', message: 'expected a channel name of 1 to 40 letters, digits, - or _' })
        else if (parsed.success) entries[name] = parsed.data
        else context.addIssue({ code: 'custom', message: describeIssue(name, parsed.error.issues[0]) })
      }
      return entries
    }),
)

/** In a variable the map is JSON. */
function jsonOf(value: unknown): unknown {
  if (typeof value !== 'string' || !value.trimStart().startsWith('{')) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

export const channelSettings = {
  ...emailSettings,
  channels: setting<Readonly<Record<string, ChannelEntry>>>(
    channelMap,
    {},
    'more channels than e-mail, by name, each with its type and options: see docs/channels.md',
    { secret: true },
  ),
} satisfies Settings

export type ChannelValues = ValuesOf<typeof channelSettings>

export { maskSecrets } from './secrets.ts'
