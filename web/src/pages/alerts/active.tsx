import { useState } from 'preact/hooks'
import { messageAt } from '../../../../src/core/forecast-words.ts'
import { isOpenAlert } from '../../../../src/core/known/alerts.ts'
import type { AlertView } from '../../answers.ts'
import { ask, inWords } from '../../api.ts'
import { now } from '../../live/agent-clock.ts'
import { present } from '../../live/present.ts'
import { gpus } from '../../live/store.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Badge, Fault } from '../../parts/parts.tsx'
import { clockTime, formatAge, formatPercent, severityTone } from '../../words.ts'
import { DURATIONS, DurationField } from './duration-field.tsx'

const MUTED: Readonly<Record<NonNullable<AlertView['mutedBy']>, string>> = {
  silence: 'silenced',
  maintenance: 'maintenance',
  acknowledged: 'acknowledged',
  simulated: 'simulated: no notifications',
}

export function ActiveAlerts({ alerts, onChange }: { readonly alerts: readonly AlertView[]; readonly onChange: () => void }) {
  const [chosen, setChosen] = useState<AlertView | null>(null)
  return (
    <>
      <ul class="list">
        {alerts.filter(isOpenAlert).map((alert) => (
          <Alert key={alert.fingerprint} alert={alert} onAcknowledge={() => setChosen(alert)} onChange={onChange} />
        ))}
      </ul>
      <Resolved alerts={alerts.filter((alert) => !isOpenAlert(alert))} />
      {chosen && (
        <Acknowledge
          alert={chosen}
          onClose={(isDone) => {
            setChosen(null)
            if (isDone) onChange()
          }}
        />
      )}
    </>
  )
}

/** A line each: how they were, and for how long. */
function Resolved({ alerts }: { readonly alerts: readonly AlertView[] }) {
  if (alerts.length === 0) return null
  return (
    <ul class="list small alerts-resolved" aria-label="Resolved">
      {alerts.map(({ fingerprint, finding, resolvedAt, waiting }) => (
        <li key={fingerprint}>
          <Badge tone="good">resolved</Badge>{' '}
          {resolvedAt !== null && `${clockTime(resolvedAt, present())} after ${formatAge(resolvedAt - finding.since)} · `}
          {finding.message}
          {waiting.length > 0 && <span class="faint"> · sending to {waiting.join(', ')}</span>}
        </li>
      ))}
    </ul>
  )
}

function Alert({
  alert,
  onAcknowledge,
  onChange,
}: {
  readonly alert: AlertView
  readonly onAcknowledge: () => void
  readonly onChange: () => void
}) {
  const { finding, state } = alert
  const [fault, setFault] = useState<string | null>(null)
  const at = present()
  const cell = finding.subject.gpu === null ? null : gpus.value.find((one) => one.id === finding.subject.gpu)
  const withdraw = () =>
    ask(`/api/v1/alerts/${encodeURIComponent(alert.fingerprint)}/ack`, {}, { method: 'DELETE' }).then(onChange, (error: unknown) =>
      setFault(inWords(error)),
    )
  return (
    <li class={`alert ${state}`}>
      <div class="alert-head">
        <Badge tone={severityTone(finding.severity)}>{state === 'firing' ? finding.severity : state}</Badge>
        {alert.mutedBy !== null && <Badge tone={alert.mutedBy === 'simulated' ? 'simulated' : 'muted'}>{MUTED[alert.mutedBy]}</Badge>}
        {alert.flapping && (
          <Badge tone="warning" title="It comes and goes: notified once, not every time">
            flapping
          </Badge>
        )}
        <span class="small faint">
          {finding.detector}
          {cell && (
            <>
              {' · '}
              <a href={`#/gpu/${encodeURIComponent(cell.info.value.label)}`}>GPU {cell.info.value.label}</a>
            </>
          )}
          {finding.subject.user !== null && ` · ${finding.subject.user}`}
          {finding.subject.pid !== null && ` · PID ${finding.subject.pid}`}
        </span>
      </div>
      <p>{messageAt(finding, at)}</p>
      <p class="tiny faint">
        since {clockTime(finding.since, at)} ({formatAge(at - finding.since)}) · confidence {formatPercent(finding.confidence)}
        {alert.told.length > 0 && ` · notified: ${alert.told.join(', ')}`}
        {alert.waiting.length > 0 && ` · sending to ${alert.waiting.join(', ')}`}
        {alert.unconfirmed && ' · from before the agent started, not seen since'}
        {alert.acknowledged &&
          ` · acknowledged by ${alert.acknowledged.by || 'somebody'} until ${clockTime(alert.acknowledged.until, now.value)}`}
      </p>
      {finding.advice.length > 0 && (
        <ul class="advice small">
          {finding.advice.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <Fault text={fault} />
      <div class="toolbar">
        {alert.acknowledged ? (
          <button type="button" onClick={withdraw}>
            Withdraw acknowledgment
          </button>
        ) : (
          <button type="button" onClick={onAcknowledge}>
            Acknowledge…
          </button>
        )}
        <a class="button" href={`#/silence?fingerprint=${encodeURIComponent(alert.fingerprint)}`}>
          Silence…
        </a>
      </div>
    </li>
  )
}

function Acknowledge({ alert, onClose }: { readonly alert: AlertView; readonly onClose: (isDone: boolean) => void }) {
  const [seconds, setSeconds] = useState(DURATIONS[1]?.seconds ?? 14_400)
  const [fault, setFault] = useState<string | null>(null)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const by = String(new FormData(event.currentTarget as HTMLFormElement).get('by') ?? '').trim()
    ask(`/api/v1/alerts/${encodeURIComponent(alert.fingerprint)}/ack`, {}, { method: 'POST', body: { seconds, by } }).then(
      () => onClose(true),
      (error: unknown) => setFault(inWords(error)),
    )
  }
  return (
    <Dialog title="Acknowledge" onClose={() => onClose(false)}>
      <form onSubmit={submit}>
        <p class="small">{alert.finding.message}</p>
        <p class="small faint">You are taking care of it: no reminders until then, unless it gets worse.</p>
        <DurationField seconds={seconds} onChange={setSeconds} />
        <label class="field">
          Your name
          <input name="by" maxLength={200} autocomplete="name" />
        </label>
        <Fault text={fault} />
        <div class="dialog-actions">
          <button type="button" onClick={() => onClose(false)}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Acknowledge
          </button>
        </div>
      </form>
    </Dialog>
  )
}
