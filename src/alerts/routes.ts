/** Which channels get an alert: those of every route that fits it. */
import { EXIT, Failure } from '../core/failure.ts'
import type { Severity } from '../core/model.ts'
import { type MatchSubject, valuesOf } from './matcher.ts'

/** A field that is not given fits everything, except severity: without it, warning and critical. */
export interface Route {
  readonly channels: readonly string[]
  readonly severity?: readonly Severity[] | undefined
  readonly detector?: readonly string[] | undefined
  /** Index, label or identity. */
  readonly gpu?: readonly string[] | undefined
  readonly user?: readonly string[] | undefined
}

const FIELDS = ['severity', 'detector', 'gpu', 'user'] as const
const USUAL: readonly Severity[] = ['warning', 'critical']

/** Refuses a route to a channel that does not exist: nobody would get the message. */
export function checkRoutes(routes: readonly Route[], channels: ReadonlySet<string>): void {
  routes.forEach((route, index) => {
    for (const name of route.channels)
      if (!channels.has(name))
        throw new Failure(`alerts.routes[${index}]: there is no channel "${name}"`, {
          exitCode: EXIT.usage,
          hint:
            channels.size === 0
              ? 'No channel is configured: configure one, or remove the route.'
              : `Configured channels: ${[...channels].join(', ')}.`,
        })
  })
}

/** Names of the channels that get it. Without any routes all of them do, for warning and critical. */
export function channelsFor(routes: readonly Route[], channels: Iterable<string>, subject: MatchSubject): ReadonlySet<string> {
  if (routes.length === 0) return new Set(USUAL.includes(subject.finding.severity) ? channels : [])
  return new Set(routes.filter((route) => fits(route, subject)).flatMap((route) => route.channels))
}

function fits(route: Route, subject: MatchSubject): boolean {
  return FIELDS.every((field) => {
    const wanted: readonly string[] | undefined = route[field] ?? (field === 'severity' ? USUAL : undefined)
    return wanted === undefined || valuesOf(field, subject).some((value) => wanted.includes(value))
  })
}
