/** What the web UI needs of the agent beyond readings: its files, the past, and facts of the machine. */
import { fileURLToPath } from 'node:url'
import type { AgentState, Log, Sink } from '../core/kinds.ts'
import { identify } from '../core/process-control.ts'
import type { Route } from '../core/route.ts'
import { accuracyRoute } from '../server/accuracy-route.ts'
import { openAssetFolder } from '../server/asset-folder.ts'
import type { Assets } from '../server/assets.ts'
import { configRoute } from '../server/config-route.ts'
import { doctorRoute } from '../server/doctor-route.ts'
import { grafanaRoutes } from '../server/grafana-routes.ts'
import { pastFindingsRoute } from '../server/past-findings-route.ts'
import { processHistoryRoute } from '../server/process-history-route.ts'
import type { ProcessControl } from '../server/signal-route.ts'
import { FindingHistory } from '../store/finding-history.ts'
import { ProcessHistory } from '../store/process-history.ts'
import { refillFindings } from '../store/refill-findings.ts'
import { ACCURACY_DAYS, accuracyReader } from './accuracy.ts'
import type { Config } from './config.ts'
import { configView } from './config-view.ts'
import { runDoctor } from './doctor-child.ts'

export interface WebUiOptions {
  readonly config: Config
  /** null: nothing is written, and nothing read back. */
  readonly logDir: string | null
  readonly state: AgentState
  readonly log: Log
  /** The port that is served; null before. */
  readonly port: () => number | null
  readonly signal: AbortSignal
}

export interface WebUi {
  /** undefined: the files are not there. */
  readonly assets: Assets | undefined
  readonly processControl: ProcessControl
  readonly routes: readonly Route[]
  readonly sinks: readonly Sink[]
  /** Ends when the findings of earlier runs are there. */
  readonly refilled: Promise<void>
}

export function createWebUi({ config, logDir, state, log, port, signal }: WebUiOptions): WebUi {
  const { values } = config
  const findings = new FindingHistory()
  const processes = new ProcessHistory(values)
  return {
    assets: openAssetFolder(values['server.web_dir'] ?? fileURLToPath(new URL('../web/', import.meta.url))) ?? undefined,
    processControl: { identify },
    routes: [
      configRoute(() => configView(config)),
      doctorRoute({ examine: () => runDoctor({ config, port, signal }), now: Date.now }),
      accuracyRoute(ACCURACY_DAYS, logDir === null ? null : accuracyReader(logDir, Date.now)),
      ...grafanaRoutes(fileURLToPath(new URL('../../grafana/dashboards/', import.meta.url))),
      pastFindingsRoute({ state, past: findings }),
      processHistoryRoute({ state, past: processes }),
    ],
    sinks: [findings, processes],
    refilled: logDir === null ? Promise.resolve() : refill(findings, logDir, values['history.hours'], signal, log),
  }
}

async function refill(findings: FindingHistory, dir: string, hours: number, signal: AbortSignal, log: Log): Promise<void> {
  const { faults, ...outcome } = await refillFindings(findings, dir, { now: Date.now(), hours, signal })
  if (faults.length > 0) log.warn({ ...outcome, faults: faults.slice(0, 10) }, 'some of the earlier findings could not be read')
  else log.debug(outcome, 'earlier findings read from the log')
}
