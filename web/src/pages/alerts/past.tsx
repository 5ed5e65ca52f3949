import type { PastAlert } from '../../../../src/core/alert-contract.ts'
import { now } from '../../live/agent-clock.ts'
import { place, setQuery } from '../../location.ts'
import { Badge, Empty, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { useAnswer } from '../../poll.ts'
import { clockTime, formatAge, severityTone } from '../../words.ts'
import { matchesText } from './past-filter.ts'
import { SAFETY_MS, useAlertsEvent } from './use-alerts.ts'

export function PastAlerts() {
  const { answer, fault, again } = useAnswer<{ alerts: readonly PastAlert[] }>('/api/v1/alerts/history', {}, SAFETY_MS)
  useAlertsEvent((event) => (event.hasMore || event.alerts.some(({ state }) => state === 'resolved')) && again())
  const text = place.value.query.find ?? ''
  const shown = (answer?.alerts ?? []).filter((alert) => matchesText(alert, text))
  return (
    <Panel
      title="History"
      aside={
        <input
          type="search"
          aria-label="Find in the history"
          placeholder="Find…"
          value={text}
          onInput={(event) => setQuery({ find: event.currentTarget.value === '' ? null : event.currentTarget.value })}
        />
      }
    >
      <Fault text={fault} />
      {answer !== null && shown.length === 0 && <Empty title={text === '' ? 'No earlier alerts' : 'No match'} />}
      {shown.length > 0 && (
        <ScrollBox label="Past alerts">
          <table>
            <thead>
              <tr>
                <th>Began</th>
                <th class="number">Lasted</th>
                <th>Severity</th>
                <th>Detector</th>
                <th>What</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((alert) => (
                <tr key={`${alert.fingerprint}${alert.firedAt}`}>
                  <td class="nowrap">{clockTime(alert.since, now.value)}</td>
                  <td class="number">{formatAge(alert.resolvedAt - alert.since)}</td>
                  <td>
                    <Badge tone={severityTone(alert.severity)}>{alert.severity}</Badge>
                  </td>
                  <td class="nowrap">{alert.detector}</td>
                  <td class="what">
                    {alert.message}
                    {alert.simulated && <Badge tone="simulated">simulated</Badge>}
                    {alert.acknowledgedBy !== null && <span class="faint small"> · acknowledged by {alert.acknowledgedBy}</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollBox>
      )}
    </Panel>
  )
}
