/** The alerts over HTTP: alerts, silences, acknowledgements, and tests of channels. */
import { z } from 'zod'
import { alertViewSchema } from '../core/alert-schema.ts'
import { Failure } from '../core/failure.ts'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import type { Alerts, ChannelHealth } from './alerts-api.ts'
import { ANSWERS, acknowledgeBody, type Ending, historyQuery, silenceBody, silenceView } from './http-schemas.ts'
import { checkMatcher, parseMatcher } from './matcher.ts'

export interface AlertRouteOptions {
  /** null: alerts are off, and every route says so. */
  readonly alerts: Alerts | null
  /** Channels that are configured and cannot be used, and why. */
  readonly unusable: ReadonlyMap<string, string>
  readonly now: () => number
}

const nothing = z.strictObject({})
const USUAL_SECONDS = 4 * 3600
const TESTS_A_MINUTE = 6
const BODY_LIMIT_BYTES = 64 * 1024
const UNUSED: Omit<ChannelHealth, 'channel'> = {
  results: { delivered: 0, retried: 0, refused: 0, expired: 0 },
  depth: 0,
  oldestAgeMs: null,
  attempts: 0,
  lastFault: null,
  problem: null,
}

export function alertRoutes({ alerts, unusable, now }: AlertRouteOptions): readonly Route[] {
  const withAlerts = (context: RouteContext, answer: (alerts: Alerts) => unknown) => (alerts ? answer(alerts) : switchedOff(context))
  return [
    route({
      method: 'GET',
      path: '/api/v1/alerts',
      summary: 'Alerts that are pending, firing, or were resolved a moment ago',
      query: nothing,
      answer: ANSWERS.alerts,
      errors: ['unavailable'],
      handler: (context) => withAlerts(context, (found) => ({ at: now(), alerts: found.list() })),
    }),
    route({
      method: 'GET',
      path: '/api/v1/alerts/history',
      summary: 'The latest alerts that are over, newest first',
      query: historyQuery,
      answer: ANSWERS.history,
      errors: ['unavailable'],
      handler: (context) => withAlerts(context, (found) => ({ at: now(), alerts: found.history(context.query) })),
    }),
    route({
      method: 'POST',
      path: '/api/v1/alerts/:fingerprint/ack',
      summary: 'Acknowledges an alert: no repeats for a while (4 hours by default), unless it gets worse',
      body: acknowledgeBody,
      bodyLimitBytes: BODY_LIMIT_BYTES,
      answer: alertViewSchema,
      errors: ['unknown_alert', 'unavailable'],
      handler: (context) => withAlerts(context, (found) => acknowledge(found, context, context.body, now())),
    }),
    route({
      method: 'DELETE',
      path: '/api/v1/alerts/:fingerprint/ack',
      summary: 'Removes an acknowledgement: repeats continue',
      answer: alertViewSchema,
      errors: ['unknown_alert', 'unavailable'],
      handler: (context) =>
        withAlerts(context, async (found) => {
          const { fingerprint = '' } = context.params
          const view = found.unacknowledge(fingerprint)
          if (!view) return unknownAlert(context, `There is no open, acknowledged alert ${quoted(fingerprint)}.`)
          await found.flush()
          return view
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/silences',
      summary: 'Active silences',
      query: nothing,
      answer: ANSWERS.silences,
      errors: ['unavailable'],
      handler: (context) => withAlerts(context, (found) => ({ at: now(), silences: found.silences() })),
    }),
    route({
      method: 'POST',
      path: '/api/v1/silences',
      summary: 'Silences all alerts that fit every matcher, for a while (4 hours by default)',
      body: silenceBody,
      bodyLimitBytes: BODY_LIMIT_BYTES,
      answer: silenceView,
      errors: ['unavailable'],
      handler: (context) => withAlerts(context, (found) => silence(found, context, context.body, now())),
    }),
    route({
      method: 'DELETE',
      path: '/api/v1/silences/:id',
      summary: 'Ends a silence; problems that are still there are reported then',
      answer: ANSWERS.unsilenced,
      errors: ['unknown_silence', 'unavailable'],
      handler: (context) =>
        withAlerts(context, async (found) => {
          const { id = '' } = context.params
          if (!found.unsilence(id))
            return context.refuse('unknown_silence', `There is no silence ${quoted(id)}.`, 'GET /api/v1/silences lists them.')
          await found.flush()
          return { id }
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/channels',
      summary: 'Channels that alerts are sent to, and how their deliveries are going',
      query: nothing,
      answer: ANSWERS.channels,
      errors: ['unavailable'],
      handler: (context) => withAlerts(context, (found) => ({ at: now(), channels: channelsOf(found, unusable) })),
    }),
    testRoute({ alerts, unusable, now }),
  ]
}

function channelsOf(alerts: Alerts, unusable: ReadonlyMap<string, string>): object[] {
  return [...alerts.health().channels, ...Array.from(unusable, ([channel, problem]) => ({ ...UNUSED, channel, problem }))]
}

async function silence(alerts: Alerts, context: RouteContext, body: z.infer<typeof silenceBody>, now: number): Promise<unknown> {
  try {
    const matchers = body.matchers.map((given) => (typeof given === 'string' ? parseMatcher(given) : checkMatcher(given)))
    const made = alerts.silence(matchers, endOf(body, now), body.comment, body.by)
    await alerts.flush()
    return made
  } catch (error) {
    return refused(error, context)
  }
}

async function acknowledge(alerts: Alerts, context: RouteContext, body: z.infer<typeof acknowledgeBody>, now: number): Promise<unknown> {
  const { fingerprint = '' } = context.params
  try {
    const view = alerts.acknowledge(fingerprint, endOf(body, now), body.by)
    if (!view) return unknownAlert(context, `There is no open alert ${quoted(fingerprint)}.`)
    await alerts.flush()
    return view
  } catch (error) {
    return refused(error, context)
  }
}

/** The other end of a channel belongs to other people: nobody may make us send there all day. */
function testRoute({ alerts, unusable, now }: AlertRouteOptions): Route {
  const tests = new Map<string, number[]>()
  return route({
    method: 'POST',
    path: '/api/v1/channels/:name/test',
    summary: "Sends a test message and returns the server's own answer",
    answer: ANSWERS.tested,
    errors: ['unknown_channel', 'too_many_requests', 'unavailable'],
    async handler(context) {
      if (!alerts) return switchedOff(context)
      const { name = '' } = context.params
      const problem = unusable.get(name)
      if (problem !== undefined) return { channel: name, ok: false, answer: `not usable: ${problem}`, retry: false, idle: false }
      const known = alerts.channels()
      if (!known.includes(name))
        return context.refuse('unknown_channel', `There is no channel ${quoted(name)}.`, `There are: ${known.join(', ') || 'none'}.`)
      const idle = alerts.idle(name)
      if (idle !== null) return { channel: name, ok: false, answer: idle, retry: false, idle: true }
      const lately = (tests.get(name) ?? []).filter((at) => at > now() - 60_000)
      if (lately.length >= TESTS_A_MINUTE)
        return context.refuse('too_many_requests', 'Too many tests of this channel.', 'Try again in a minute.', { 'retry-after': '60' })
      tests.set(name, [...lately, now()])
      const delivery = await alerts.test(name)
      return delivery.ok
        ? { channel: name, ok: true, answer: delivery.answer, retry: false, idle: false }
        : { channel: name, ok: false, answer: delivery.reason, retry: delivery.retry, idle: false }
    },
  })
}

function endOf({ until, seconds }: Ending, now: number): number {
  if (until !== undefined && seconds !== undefined) throw new Failure('until and seconds are both given, expected one of them')
  return until ?? now + (seconds ?? USUAL_SECONDS) * 1000
}

function refused(error: unknown, { refuse }: RouteContext): Reply {
  if (error instanceof Failure) return refuse('invalid_body', `${error.message}.`, error.hint ?? undefined)
  throw error
}

function unknownAlert({ refuse }: RouteContext, message: string): Reply {
  return refuse('unknown_alert', message, 'GET /api/v1/alerts lists the open alerts.')
}

function switchedOff({ refuse }: RouteContext): Reply {
  return { ...refuse('unavailable', 'Alerts are switched off.', 'Set alerts.enabled to true and restart the agent.'), expected: true }
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 200))
}
