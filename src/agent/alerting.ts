/** The alerts in the agent: the engine, its channels, and the routes of both. */
import { join } from 'node:path'
import { createAlerts } from '../alerts/alerts.ts'
import type { Alerts } from '../alerts/alerts-api.ts'
import { alertRoutes } from '../alerts/http-routes.ts'
import { openChannels } from '../channels/index.ts'
import { pushRoutes } from '../channels/push-routes.ts'
import { PushSubscriptions } from '../channels/push-subscriptions.ts'
import type { DetectorDeclaration } from '../core/detector-contract.ts'
import type { AgentState, History, Log } from '../core/kinds.ts'
import type { Route } from '../core/route.ts'
import type { ConfigValues } from './config.ts'
import { webUiUrl } from './web-ui-url.ts'

export interface AlertingOptions {
  readonly values: ConfigValues
  /** null: nothing is written, unless `alerts.dir` says where. */
  readonly logDir: string | null
  readonly state: AgentState
  readonly history: History
  readonly detectors: readonly DetectorDeclaration[]
  readonly log: Log
  readonly runName?: (run: string) => string | null
  readonly env?: NodeJS.ProcessEnv
}

export interface Alerting {
  /** null: they are switched off. */
  readonly alerts: Alerts | null
  readonly routes: readonly Route[]
  /** What keeps configured channels from working, without secrets. */
  readonly problems: readonly string[]
}

/** Throws a Failure when the configuration makes no sense. It reads files and starts nothing that would need to be ended. */
export function createAlerting(options: AlertingOptions): Alerting {
  const { values, logDir, state, history, detectors, log, runName, env = process.env } = options
  const now = Date.now
  if (!values['alerts.enabled'])
    return {
      alerts: null,
      routes: [...alertRoutes({ alerts: null, unusable: new Map(), now }), ...pushRoutes(null)],
      problems: [],
    }
  const dir = alertsFolder(values, logDir)
  const push = dir === null ? null : new PushSubscriptions(dir)
  const stateDir = dir ?? join(values['log.dir'], 'alerts')
  const { channels, unusable, disabled, problems } = openChannels(values, { env, stateDir, push })
  const alerts = createAlerts({
    dir,
    channels: new Map(channels.map((channel) => [channel.name, channel])),
    // A route may name one that is switched off: that is how it is switched off.
    unusableChannels: [...unusable.keys(), ...disabled],
    settings: { ...values, 'alerts.dashboard_url': webUiUrl(values, state.hostname) },
    state,
    log: log.child({ room: 'alerts' }),
    now,
    history,
    detectors,
    ...(runName ? { runName } : {}),
  })
  return { alerts, routes: [...alertRoutes({ alerts, unusable, now }), ...pushRoutes(push)], problems }
}

/** Where alerts are kept; null: only in memory. */
export function alertsFolder(values: ConfigValues, logDir: string | null): string | null {
  return values['alerts.dir'] ?? (logDir === null ? null : join(logDir, 'alerts'))
}
