import { useEffect, useState } from 'preact/hooks'
import type { DoctorAnswer } from '../../answers.ts'
import { ask, inWords } from '../../api.ts'
import { now } from '../../live/agent-clock.ts'
import { Badge, CopyButton, Empty, Fault, Panel } from '../../parts/parts.tsx'
import { clockTime, formatDuration, type Tone } from '../../words.ts'

const STATES: Readonly<
  Record<DoctorAnswer['checks'][number]['state'], { readonly words: string; readonly tone: Tone; readonly order: number }>
> = {
  missing: { words: 'missing', tone: 'critical', order: 0 },
  advice: { words: 'advice', tone: 'warning', order: 1 },
  ok: { words: 'ok', tone: 'good', order: 2 },
}

export function DoctorPanel() {
  const [answer, setAnswer] = useState<DoctorAnswer | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const examine = async (isFresh: boolean, signal?: AbortSignal) => {
    setBusy(true)
    try {
      setAnswer(await ask<DoctorAnswer>('/api/v1/doctor', { fresh: isFresh ? 1 : null }, signal ? { signal } : {}))
      setFault(null)
    } catch (error) {
      if (!signal?.aborted) setFault(inWords(error))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => {
    const stop = new AbortController()
    void examine(false, stop.signal)
    return () => stop.abort()
  }, [])
  const checks = [...(answer?.checks ?? [])].sort((a, b) => STATES[a.state].order - STATES[b.state].order)
  return (
    <Panel
      title="Doctor"
      id="doctor"
      aside={
        <button type="button" disabled={isBusy} onClick={() => void examine(true)}>
          {isBusy ? 'Examining…' : 'Run again'}
        </button>
      }
    >
      <Fault text={fault} />
      {answer === null && fault === null && <Empty title="Checking the machine…">It takes some seconds.</Empty>}
      <ul class="list">
        {checks.map(({ name, state, message, fix }) => (
          <li key={`${name} ${message}`} class="check">
            <Badge tone={STATES[state].tone}>{STATES[state].words}</Badge>
            <div>
              <strong>{name}</strong> <span>{message}</span>
              {fix !== null && (
                <p class="small check-fix">
                  <span>{fix}</span>
                  <CopyButton text={fix} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
      {answer && (
        <p class="tiny faint" role="status">
          Checked at {clockTime(answer.at, now.peek())} in {formatDuration(answer.tookMs)}. The same in a terminal:{' '}
          <code>gpuwarden doctor</code>
        </p>
      )}
    </Panel>
  )
}
