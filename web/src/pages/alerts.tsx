/** Open alerts, silences, past alerts, the channels, and this browser's notifications. */
import '../style/alerts.css'
import { isOpenAlert, openAlertsInWords, untoldBy } from '../../../src/core/known/alerts.ts'
import { findingsInWords } from '../../../src/core/known/findings.ts'
import type { AlertView } from '../answers.ts'
import { findings } from '../live/store.ts'
import { place } from '../location.ts'
import { Empty, Fault, Panel } from '../parts/parts.tsx'
import { ActiveAlerts } from './alerts/active.tsx'
import { Channels } from './alerts/channels.tsx'
import { PastAlerts } from './alerts/past.tsx'
import { PushOptIn } from './alerts/push-opt-in.tsx'
import { Silences } from './alerts/silences.tsx'
import { useAlerts } from './alerts/use-alerts.ts'

export function AlertsPage() {
  const { alerts: all, fault, code, again } = useAlerts()
  // The link of a message that could not name all of them.
  const untold = place.value.query.untold ?? null
  const alerts = all === null || untold === null ? all : untoldBy(untold, all)
  if (code === 'unavailable') return <AlertsOff text={fault ?? ''} />
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Alerts</h1>
        <a class="button" href="#/silence">
          New silence
        </a>
      </div>
      <Panel title="Open" aside={alerts && <Counts alerts={alerts} />}>
        <Fault text={fault} />
        {untold !== null && (
          <p class="small faint">
            Only alerts that no message of {untold} has named. <a href="#/alerts">Show all</a>
          </p>
        )}
        {alerts !== null && !alerts.some(isOpenAlert) && (
          <Empty title="No alert is open">A finding that lasts becomes an alert: it appears here and goes to the channels below.</Empty>
        )}
        {alerts !== null && alerts.length > 0 && <ActiveAlerts alerts={alerts} onChange={again} />}
      </Panel>
      <div class="grid columns-2">
        <Silences />
        <PushOptIn />
      </div>
      <Channels />
      <PastAlerts />
    </>
  )
}

/** In the words of `gpuwarden top`: what people are notified of, and what detectors say now. */
function Counts({ alerts }: { readonly alerts: readonly AlertView[] }) {
  return (
    <span class="small faint">
      {openAlertsInWords(alerts)}, <a href="#/">{findingsInWords(findings.value)}</a>
    </span>
  )
}

function AlertsOff({ text }: { readonly text: string }) {
  return (
    <>
      <h1>Alerts</h1>
      <Panel>
        <Empty title="Alerts are off">
          {text} What the detectors find is still shown on the <a href="#/">overview</a>.
        </Empty>
      </Panel>
    </>
  )
}
