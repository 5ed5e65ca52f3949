import { useState } from 'preact/hooks'
import { now } from '../live/agent-clock.ts'
import { boundsOf, chooseRange, currentRange, RANGES } from '../time-range.ts'
import { clockTime } from '../words.ts'

/** From 5 minutes to a year, or two moments of one's own; kept in the address, so that a link shows the same. */
export function RangePicker() {
  const range = currentRange()
  const [isOpen, setOpen] = useState(false)
  return (
    <div class="toolbar">
      <fieldset class="choices" aria-label="Time range">
        {RANGES.map((one) => (
          <button
            key={one.name}
            type="button"
            aria-pressed={range.kind === 'last' && range.name === one.name}
            onClick={() => chooseRange(one)}
          >
            {one.name.replace(/(\d+)(\w)/, (_, count, unit) => `${count} ${unit === 'm' ? 'min' : unit}`)}
          </button>
        ))}
        <button type="button" aria-pressed={range.kind === 'fixed'} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {range.kind === 'fixed' ? `${clockTime(range.from, now.peek())} – ${clockTime(range.to, now.peek())}` : 'Custom…'}
        </button>
      </fieldset>
      {isOpen && <CustomRange onDone={() => setOpen(false)} />}
    </div>
  )
}

function CustomRange({ onDone }: { readonly onDone: () => void }) {
  // As it was when the fields opened: what is typed must not be overwritten by the clock.
  const [{ from, to }] = useState(() => boundsOf(currentRange(), now.peek()))
  const [fault, setFault] = useState<string | null>(null)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const begin = new Date(String(form.get('from'))).getTime()
    const end = new Date(String(form.get('to'))).getTime()
    if (!(end > begin)) return setFault('The end must be after the beginning.')
    chooseRange({ kind: 'fixed', from: begin, to: end })
    onDone()
  }
  return (
    <form class="toolbar" onSubmit={submit}>
      <label>
        From <input type="datetime-local" name="from" step="1" required defaultValue={localText(from)} />
      </label>
      <label>
        to <input type="datetime-local" name="to" step="1" required defaultValue={localText(to)} />
      </label>
      <button type="submit">Show</button>
      {fault !== null && (
        <span class="tone-critical small" role="alert">
          {fault}
        </span>
      )}
    </form>
  )
}

/** As the browser's field wants it: local time without a zone. */
function localText(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
