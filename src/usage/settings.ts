import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

const price = z.number().min(0)
const ADDRESS = /^[^\s@<>,;"]+@[^\s@<>,;"]+$/

export const usageSettings = {
  'usage.enabled': setting(z.boolean(), true, 'Count who uses the GPUs, by hour; kept in the folder "usage" of the log folder.'),
  'usage.keep_days': setting(z.number().min(0), 400, 'Days that usage is kept; 0: forever.'),
  'usage.keep_mb': setting(z.number().min(0), 256, 'The oldest days of usage are deleted while the total is above this; 0: no limit.'),
  'usage.price_per_hour': setting(
    price.nullable(),
    null,
    'What one GPU costs per hour; default: a list price for the model, in US dollars.',
  ),
  'usage.prices': setting<Readonly<Record<string, number>>>(
    z.record(z.string().min(1), price),
    {},
    'Prices per hour by model: a part of the name of the card, and its price, such as {"H100": 2.50, "RTX 4090": 0.30}.',
  ),
  'usage.mail': setting<'off' | 'weekly' | 'monthly'>(
    z.enum(['off', 'weekly', 'monthly']),
    'off',
    'Send a mail about usage: a summary to the owner of the server, and to each user in alerts.owners what they used and could save.',
  ),
  'usage.mail_hour': setting(
    z.number().int().min(0).max(23),
    8,
    'Hour of the day, local time, of that mail: on Mondays, or on the first of the month.',
  ),
  'usage.mail_to': setting<string[]>(
    z.array(z.string().regex(ADDRESS, 'expected a mail address')),
    [],
    'Who gets the summary; default: the recipients of the mail channel.',
  ),
  'usage.mail_channel': setting(z.string().min(1), 'email', 'Name of the channel of type email that sends it.'),
} satisfies Settings

export type UsageValues = ValuesOf<typeof usageSettings>
