/** What can be configured about channels: e-mail by keys and variables of its own, all others in one map. */
import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../setting.ts'
import { describeIssue } from './channel-kind.ts'
import { mailAddress } from './email.ts'
import { CHANNEL_KINDS } from './index.ts'

export const emailSettings = {
  'email.server': setting<string | null>({
    schema: z.string().min(1).nullable(),
    default: null,
    env: 'SMTP_SERVER',
    help: 'SMTP server that takes the alerts',
  }),
  'email.port': setting<number | null>({
    schema: z.number().int().min(1).max(65_535).nullable(),
    default: null,
    env: 'SMTP_PORT',
    help: 'its port: 587 with STARTTLS (when not given), 465 with TLS, 25 or 1025 for a local relay',
  }),
  'email.from': setting<string | null>({
    schema: mailAddress.nullable(),
    default: null,
    env: 'EMAIL_ADDRESS',
    help: 'address that alerts are sent from',
  }),
  'email.password': setting<string | null>({
    schema: z.string().nullable(),
    default: null,
    env: 'EMAIL_PASSWORD',
    secret: true,
    help: 'password of that address',
  }),
  'email.to': setting<string[]>({
    schema: z.array(mailAddress),
    default: [],
    env: 'TO_EMAILS',
    help: 'who gets the alerts; a list with commas',
  }),
  'email.user': setting<string | null>({
    schema: z.string().min(1).nullable(),
    default: null,
    help: 'name to log in with, where it is not the address',
  }),
  'email.tls': setting<'auto' | 'starttls' | 'implicit' | 'none'>({
    schema: z.enum(['auto', 'starttls', 'implicit', 'none']),
    default: 'auto',
    help: 'how the line is protected: auto (by port, and always before a password crosses a network), starttls, implicit or none',
  }),
  'email.tls_verify': setting({
    schema: z.boolean(),
    default: true,
    help: 'check the certificate of the mail server',
  }),
} satisfies Settings

/** One entry of `channels`, as written: its options were checked against those of its type. */
export interface ChannelEntry {
  readonly type: string
  readonly enabled?: boolean | undefined
  readonly [option: string]: unknown
}

const TYPES = CHANNEL_KINDS.map((kind) => kind.name)
const entry = z.looseObject({
  type: z.enum(TYPES as [string, ...string[]], { error: `expected one of ${TYPES.join(', ')}` }),
  enabled: z.boolean().optional(),
})

/** The whole map in one message, because it is one setting: `team.url: expected …`. Values are never repeated. */
const channelMap = z.preprocess(
  jsonOf,
  z
    .record(z.string(), z.unknown(), { error: 'expected channels by name, such as team: { type: slack, url: … }' })
    .transform((map, context) => {
      const problem = (text: string) => context.addIssue({ code: 'custom', message: text })
      const entries: Record<string, ChannelEntry> = {}
      for (const [name, value] of Object.entries(map)) {
        if (!/^[\w-]{1,40}$/.test(name)) problem(`a channel's name has 1 to 40 letters, digits, - or _`)
        const parsed = entry.safeParse(value)
        if (!parsed.success) {
          problem(describeIssue(name, parsed.error.issues[0]))
          continue
        }
        const { type, enabled: _, ...options } = parsed.data
        const checked = CHANNEL_KINDS.find((kind) => kind.name === type)?.written.safeParse(options)
        if (checked?.success === false) problem(describeIssue(name, checked.error.issues[0]))
        entries[name] = parsed.data
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
  channels: setting<Readonly<Record<string, ChannelEntry>>>({
    schema: channelMap,
    default: {},
    secret: true,
    help: 'channels besides e-mail, by name, each with its type and options: see docs/channels.md',
  }),
} satisfies Settings

export type ChannelValues = ValuesOf<typeof channelSettings>

export { maskSecrets } from './secrets.ts'
