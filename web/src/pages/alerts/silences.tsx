import { useState } from 'preact/hooks'
import { ask, inWords } from '../../api.ts'
import { now } from '../../live/agent-clock.ts'
import { Empty, Fault, Panel } from '../../parts/parts.tsx'
import { useAnswer } from '../../poll.ts'
import { clockTime, formatAge } from '../../words.ts'
import { SAFETY_MS, useAlertsEvent } from './use-alerts.ts'

export interface SilenceView {
  readonly id: string
  readonly matchers: readonly { readonly name: string; readonly operator: string; readonly value: string }[]
  readonly createdAt: number
  readonly until: number
  readonly comment: string
  readonly by: string
}

export function Silences() {
  const { answer, fault, again } = useAnswer<{ silences: readonly SilenceView[] }>('/api/v1/silences', {}, SAFETY_MS)
  useAlertsEvent((event) => event.silencesChanged && again())
  const [refusal, setRefusal] = useState<string | null>(null)
  const end = (id: string) =>
    ask(`/api/v1/silences/${encodeURIComponent(id)}`, {}, { method: 'DELETE' }).then(again, (error: unknown) => setRefusal(inWords(error)))
  return (
    <Panel title="Silences">
      <Fault text={refusal ?? fault} />
      {answer !== null && answer.silences.length === 0 && <Empty title="Nothing is silenced" />}
      <ul class="list">
        {answer?.silences.map((silence) => (
          <li key={silence.id} class="silence">
            <div>
              <code>{silence.matchers.map(({ name, operator, value }) => `${name}${operator}${value}`).join(', ')}</code>
              <p class="tiny faint">
                until {clockTime(silence.until, now.value)} ({formatAge(silence.until - now.value)} left)
                {silence.by !== '' && ` · by ${silence.by}`}
                {silence.comment !== '' && ` · ${silence.comment}`}
              </p>
            </div>
            <button type="button" onClick={() => void end(silence.id)}>
              End now
            </button>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
