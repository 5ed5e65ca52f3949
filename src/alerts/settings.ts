/** The settings of the alerts. Lists and maps come from the file, or as JSON text from a variable. */
import { z } from 'zod'
import { type Setting, type Settings, setting, type ValuesOf } from '../core/setting.ts'
import { addressFault } from '../core/web-address.ts'
import type { DispatchOptions, MaintenanceWindow } from './dispatch.ts'
import type { Route } from './routes.ts'
import { RULE_NAMES, RULES, type RuleChoice, type RuleName, type RuleSettings } from './rules.ts'
import { WEEKDAYS, type WeeklyWindow } from './time-window.ts'

const names = z.array(z.string().min(1, 'must be a name'))
const gpus = z.array(
  z.union([z.string().min(1), z.number().int().min(0)], 'expected the index, label or identity of a GPU').transform(String),
)
const severity = z.enum(['info', 'warning', 'critical'])
const clock = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'expected a time of day such as 22:00 (in quotes)')
const moment = z.string().refine((text) => Number.isFinite(Date.parse(text)), 'expected a time such as 2030-01-31T08:00:00+01:00')
const days = z.array(z.enum(WEEKDAYS)).min(1).optional()

const route = z.strictObject({
  channels: names.min(1, 'names no channel'),
  severity: z.array(severity).min(1).optional(),
  detector: names.min(1).optional(),
  gpu: gpus.min(1).optional(),
  user: names.min(1).optional(),
})
const weekly = z.strictObject({ days, from: clock, to: clock })
const about = { gpu: gpus.min(1).optional(), comment: z.string().optional() }
const maintenance = z
  .strictObject({ days, from: clock.optional(), to: clock.optional(), start: moment.optional(), end: moment.optional(), ...about })
  .refine(
    ({ days: on, from, to, start, end }) =>
      from !== undefined && to !== undefined
        ? start === undefined && end === undefined
        : start !== undefined && end !== undefined && from === undefined && to === undefined && on === undefined,
    'expected either from and to (days are optional), or start and end',
  )
const ruleFields = {
  for_seconds: z.number().min(0).optional(),
  keep_firing_seconds: z.number().min(0).optional(),
  severity: severity.optional(),
}
const rule = z.union([z.boolean(), z.strictObject(ruleFields)])
const levelRule = z.union([
  z.boolean(),
  z
    .strictObject({ ...ruleFields, threshold: z.number().min(0).optional(), clear: z.number().min(0).optional() })
    .refine(({ threshold, clear }) => threshold === undefined || clear === undefined || clear <= threshold, {
      path: ['clear'],
      message: 'must be at or below threshold',
    }),
])
const web = z
  .string()
  .refine((text) => /^https?:\/\/\S+$/.test(text) && URL.canParse(text), 'expected an address that begins with http:// or https://')

/** Of an address that the agent itself calls. */
const called = web.superRefine((text, context) => {
  const fault = URL.canParse(text) ? addressFault(new URL(text)) : null
  if (fault !== null) context.addIssue({ code: 'custom', message: fault })
})

/** An error message names the place inside the value: `[1].channels: names no channel`. */
function named<T>(schema: z.ZodType): z.ZodType<T> {
  const outer = z.unknown().transform((given, context) => {
    const result = schema.safeParse(typeof given === 'string' ? parsedText(given) : given)
    if (result.success) return result.data
    for (const issue of result.error.issues) context.addIssue({ code: 'custom', message: wordsOf(issue) })
    return z.NEVER
  })
  return outer as unknown as z.ZodType<T>
}

function wordsOf(issue: z.core.$ZodIssue): string {
  // Of the choices of a union, the object says what is wrong inside it.
  const inner = issue.code === 'invalid_union' ? issue.errors.at(-1)?.[0] : undefined
  if (inner && (inner.path.length > 0 || inner.code === 'unrecognized_keys'))
    return wordsOf({ ...inner, path: [...issue.path, ...inner.path] })
  const place = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
  return place === '' ? issue.message : `${place.replace(/^\./, '')}: ${issue.message}`
}

function parsedText(text: string): unknown {
  try {
    return /^\s*[[{]/.test(text) ? JSON.parse(text) : text
  } catch {
    return text
  }
}

type RuleSettingKey = `alerts.rules.${RuleName}`

const ruleKeys = Object.fromEntries(
  RULE_NAMES.map((name) => {
    const { detector, level } = RULES[name]
    const levels = level === null ? '' : `threshold and clear (${level}), `
    const help = `alerts of the detector ${detector}: false for none, or an object with ${levels}for_seconds, keep_firing_seconds, severity`
    return [`alerts.rules.${name}`, setting<RuleChoice>(named(level === null ? rule : levelRule), true, help)]
  }),
) as Readonly<Record<RuleSettingKey, Setting<RuleChoice>>>

export const alertSettings = {
  'alerts.enabled': setting(z.boolean(), true, 'turn findings into alerts and deliver them'),
  'alerts.dir': setting(
    z.string().min(1).nullable(),
    null,
    'folder where alerts are kept until they are delivered; default: "alerts" in the log folder',
  ),
  'alerts.routes': setting<Route[]>(
    named(z.array(route)),
    [],
    'which alerts go to which channels: a list of {channels, severity, detector, gpu, user}; default: warnings and above to every channel',
  ),
  'alerts.owners': setting<Readonly<Record<string, string>>>(
    named(z.record(z.string(), z.string().regex(/^\S+$/, 'expected an address'))),
    {},
    'address of each Unix user, to notify them about their own processes',
  ),
  'alerts.ignore': setting(names, [], 'detectors whose findings are not alerts: a comma-separated list'),
  'alerts.repeat_hours': setting(z.number().min(0.05).max(8760), 4, 'how often an alert that is still active is repeated'),
  'alerts.group_seconds': setting(
    z.number().min(0).max(3600),
    30,
    'how long an alert waits for others to share a message; a critical one does not wait',
  ),
  'alerts.keep_firing_seconds': setting(z.number().min(0).max(86_400), 60, 'how long a finding must be gone before its alert is resolved'),
  'alerts.max_age_hours': setting(
    z.number().min(0.1).max(8760),
    72,
    'how long delivery of a message is retried, counting only time the agent runs',
  ),
  'alerts.messages_per_hour': setting(z.number().min(1).max(36_000), 60, 'messages a channel sends per hour; more are combined'),
  'alerts.burst': setting(
    z.number().int().min(1).max(1000),
    10,
    'messages a channel may send at once; a quarter is reserved for critical alerts',
  ),
  'alerts.quiet_hours': setting<WeeklyWindow[]>(
    named(z.array(weekly)),
    [],
    'quiet hours: all but critical alerts are held and sent afterwards as one message; a list of {from, to, days} in local time',
  ),
  'alerts.maintenance': setting<MaintenanceWindow[]>(
    named(z.array(maintenance)),
    [],
    'maintenance windows without notifications: a list of {from, to, days, gpu} or {start, end, gpu}',
  ),
  'alerts.simulated': setting(z.boolean(), false, 'also deliver alerts of simulated and recorded GPUs, marked as such'),
  'alerts.dashboard_url': setting(
    web.nullable(),
    null,
    'address of the web UI as people reach it, for links in messages; default: the address the server listens on',
  ),
  'alerts.heartbeat_url': setting(
    called.nullable(),
    null,
    "address to call while GPUs are being watched, so that a missing call means gpuwarden is down (a dead man's switch)",
    { secret: true },
  ),
  'alerts.heartbeat_minutes': setting(z.number().min(0.1).max(1440), 5, 'minutes between two heartbeats'),
  'alerts.heartbeat_method': setting<'GET' | 'POST'>(z.enum(['GET', 'POST']), 'GET', 'HTTP method of the heartbeat'),
  ...ruleKeys,
} satisfies Settings

export type AlertValues = ValuesOf<typeof alertSettings>

export function ruleSettings(values: AlertValues): RuleSettings {
  return {
    choices: Object.fromEntries(RULE_NAMES.map((name) => [name, values[`alerts.rules.${name}`]])) as Record<RuleName, RuleChoice>,
    keepFiringSeconds: values['alerts.keep_firing_seconds'],
    ignored: values['alerts.ignore'],
  }
}

type DispatchSettings = Pick<DispatchOptions, 'routes' | 'maintenance' | 'owners' | 'repeatMs' | 'deliverSimulated'>

export function dispatchSettings(values: AlertValues): DispatchSettings {
  return {
    routes: values['alerts.routes'],
    maintenance: values['alerts.maintenance'],
    owners: values['alerts.owners'],
    repeatMs: values['alerts.repeat_hours'] * 3_600_000,
    deliverSimulated: values['alerts.simulated'],
  }
}
