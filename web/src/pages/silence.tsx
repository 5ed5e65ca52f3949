/** Silences something for a while; the link in a message leads here with its fingerprint. */
import '../style/alerts.css'
import { useState } from 'preact/hooks'
import { ask, inWords } from '../api.ts'
import { go, place } from '../location.ts'
import { Badge, Fault, Panel } from '../parts/parts.tsx'
import { severityTone } from '../words.ts'
import { DURATIONS, DurationField } from './alerts/duration-field.tsx'
import { suggestions } from './alerts/silence-matchers.ts'
import { useAlerts } from './alerts/use-alerts.ts'

export function SilencePage() {
  const fingerprint = place.value.query.fingerprint ?? null
  const { alerts, fault: unanswered } = useAlerts()
  const alert = alerts?.find((one) => one.fingerprint === fingerprint) ?? null
  const choices = suggestions(fingerprint, alert)
  const [matchers, setMatchers] = useState<string | null>(null)
  const [seconds, setSeconds] = useState(DURATIONS[1]?.seconds ?? 14_400)
  const [fault, setFault] = useState<string | null>(null)
  const text = matchers ?? choices[0]?.matchers ?? ''
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const wanted = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
    const body = { matchers: wanted, seconds, comment: String(form.get('comment') ?? ''), by: String(form.get('by') ?? '') }
    ask('/api/v1/silences', {}, { method: 'POST', body }).then(
      () => go(['alerts']),
      (error: unknown) => setFault(inWords(error)),
    )
  }
  return (
    <>
      <div class="page-head">
        <h1>Silence</h1>
      </div>
      <Fault text={unanswered} />
      {fingerprint !== null && alerts !== null && (
        <Panel>
          {alert ? (
            <p>
              <Badge tone={severityTone(alert.finding.severity)}>{alert.finding.severity}</Badge> {alert.finding.message}
            </p>
          ) : (
            <p class="small">This alert is resolved. A silence keeps it quiet if it comes back.</p>
          )}
        </Panel>
      )}
      <form class="panel silence-form" onSubmit={submit}>
        {choices.length > 1 && (
          <fieldset class="silence-choices">
            <legend class="small">What to silence</legend>
            {choices.map((choice) => (
              <label key={choice.matchers}>
                <input type="radio" name="what" checked={text === choice.matchers} onChange={() => setMatchers(choice.matchers)} />
                {choice.words}
              </label>
            ))}
          </fieldset>
        )}
        <label class="field">
          Matchers, one a line; all of them have to fit
          <textarea
            class="mono"
            rows={3}
            required
            value={text}
            placeholder="detector=thermal&#10;gpu=0"
            onInput={(event) => setMatchers(event.currentTarget.value)}
          />
        </label>
        <DurationField seconds={seconds} onChange={setSeconds} />
        <label class="field">
          Why
          <input name="comment" maxLength={1000} />
        </label>
        <label class="field">
          Your name
          <input name="by" maxLength={200} autocomplete="name" />
        </label>
        <Fault text={fault} />
        <div class="dialog-actions">
          <a class="button" href="#/alerts">
            Cancel
          </a>
          <button type="submit" class="primary">
            Silence
          </button>
        </div>
      </form>
    </>
  )
}
