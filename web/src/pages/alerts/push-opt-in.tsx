import { useEffect, useState } from 'preact/hooks'
import { inWords } from '../../api.ts'
import { Badge, Fault, Panel } from '../../parts/parts.tsx'
import { type PushState, pushState, subscribe, unsubscribe } from '../../push.ts'

const WORDS: Readonly<Record<PushState, string>> = {
  on: 'This browser gets a notification for every alert, even when this page is closed.',
  off: 'Get a notification for every alert, even when this page is closed. On a phone, add this page to the home screen first.',
  denied: 'The browser blocks notifications from this address. Allow them in its settings for this site.',
  insecure: 'Browsers allow notifications only over https or from the same machine. Put a proxy with a certificate in front of the agent.',
  unsupported: 'This browser has no web push.',
}

export function PushOptIn() {
  const [state, setState] = useState<PushState | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const look = () => pushState().then(setState, () => setState('unsupported'))
  useEffect(() => void look(), [])
  const change = (action: () => Promise<void>) => {
    setFault(null)
    action()
      .catch((error: unknown) => setFault(error instanceof DOMException ? `The browser refused: ${error.message}` : inWords(error)))
      .finally(look)
  }
  return (
    <Panel
      title="Notifications in this browser"
      aside={state === 'on' ? <Badge tone="good">on</Badge> : state === null ? null : <Badge tone="muted">off</Badge>}
    >
      {state !== null && <p class="small">{WORDS[state]}</p>}
      <Fault text={fault} />
      <div class="toolbar">
        {state === 'off' && (
          <button type="button" class="primary" onClick={() => change(subscribe)}>
            Notify me
          </button>
        )}
        {state === 'on' && (
          <button type="button" onClick={() => change(unsubscribe)}>
            Stop notifying me
          </button>
        )}
      </div>
    </Panel>
  )
}
