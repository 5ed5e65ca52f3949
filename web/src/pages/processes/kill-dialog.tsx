/** Asks before a process is ended, says what will happen, and shows what the agent answered. */
import { useState } from 'preact/hooks'
import type { SignalAnswer } from '../../answers.ts'
import { ask, inWords } from '../../api.ts'
import { now } from '../../live/agent-clock.ts'
import { gpus } from '../../live/store.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Fault } from '../../parts/parts.tsx'
import { clockTime, formatAge, formatBytes, NOT_AVAILABLE } from '../../words.ts'
import type { ProcessRow } from './process-rows.ts'

const SIGNALS = [
  { name: 'SIGINT', label: 'Interrupt (INT)', what: 'Like Ctrl+C: training code can save a checkpoint and exit.' },
  {
    name: 'SIGTERM',
    label: 'Terminate (TERM)',
    what: 'Asks it to exit; it can still clean up. A program that does not handle the signal ends at once.',
  },
  { name: 'SIGKILL', label: 'Kill (KILL)', what: 'Ends it at once. Nothing is saved: what was not written to disk is lost.' },
] as const

type SignalName = (typeof SIGNALS)[number]['name']

export function KillDialog({ row, onClose }: { readonly row: ProcessRow; readonly onClose: () => void }) {
  const { process, gpuLabel, command } = row
  const [chosen, setChosen] = useState<SignalName>('SIGTERM')
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState<string | null>(null)
  const [answer, setAnswer] = useState<SignalAnswer | null>(null)
  const startedAt = process.info?.startedAt ?? null
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    setBusy(true)
    setFault(null)
    try {
      const body = { signal: chosen, startedAt }
      setAnswer(await ask<SignalAnswer>(`/api/v1/processes/${process.pid}/signal`, {}, { method: 'POST', body }))
    } catch (error) {
      setFault(inWords(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={`End process ${process.pid}?`} onClose={onClose}>
      <form onSubmit={submit}>
        <dl class="process-facts">
          <Fact name="PID">{process.pid}</Fact>
          <Fact name="User">{process.info?.user ?? 'unknown'}</Fact>
          <Fact name="GPU">{gpuLabel}</Fact>
          <Fact name="GPU memory">{formatBytes(process.memoryUsedBytes)}</Fact>
        </dl>
        <code class="whole">{command ?? NOT_AVAILABLE}</code>
        <fieldset class="signals" disabled={isBusy}>
          <legend class="small faint">Signal</legend>
          {SIGNALS.map(({ name, label, what }) => (
            <label key={name} class="signal">
              <input type="radio" name="signal" value={name} checked={name === chosen} onChange={() => setChosen(name)} />
              <span>
                <strong>{label}</strong>
                <span class="small faint">{what}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <p class="small faint">
          The agent sends the signal only if this PID is still the same process. It logs the request, where it came from, and the result.
        </p>
        <Fault text={fault} />
        {answer && <Outcome answer={answer} startedAt={startedAt} />}
        <div class="dialog-actions">
          <button type="button" onClick={onClose}>
            {answer ? 'Close' : 'Cancel'}
          </button>
          <button type="submit" class="danger" disabled={isBusy}>
            {isBusy ? 'Sending…' : `Send ${chosen}`}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: string | number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A signal that was sent is not yet a process that has ended. */
function Outcome({ answer, startedAt }: { readonly answer: SignalAnswer; readonly startedAt: number | null }) {
  const isThere = gpus.value.some((cell) =>
    cell.processes.value.some(({ pid, info }) => pid === answer.pid && (info?.startedAt ?? null) === startedAt),
  )
  return (
    <p class="small" role="status">
      {answer.signal} was sent at {clockTime(answer.sentAt, now.value)}.{' '}
      {isThere ? (
        <span class="tone-warning">The process is still on the GPU, {formatAge(now.value - answer.sentAt)} later.</span>
      ) : (
        <span class="tone-good">The process has left the GPU.</span>
      )}
    </p>
  )
}
