import { useState } from 'preact/hooks'
import { inWords, Refusal, signIn } from '../api.ts'
import { Fault } from '../parts/parts.tsx'

/** Where a token is required nothing else is shown before it was given. */
export function LoginPage() {
  const [fault, setFault] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const token = String(new FormData(form).get('token') ?? '').trim()
    setBusy(true)
    try {
      await signIn(token)
    } catch (error) {
      const wait = error instanceof Refusal && error.waitSeconds !== null ? ` Try again in ${error.waitSeconds} s.` : ''
      setFault(error instanceof Refusal && error.code === 'wrong_token' ? 'This token is wrong.' : `${inWords(error)}${wait}`)
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="login" id="main">
      <form class="panel" onSubmit={submit}>
        <h1>gpuwarden</h1>
        <p class="small faint">
          This agent needs a token. It is in the agent's configuration (<code>server.token</code>), or in the file that it named when it was
          started.
        </p>
        <label class="field">
          Token
          {/* A password field, so that browsers offer to keep it and nobody reads along. */}
          <input type="password" name="token" autocomplete="current-password" required spellcheck={false} />
        </label>
        <Fault text={fault} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Checking…' : 'Sign in'}
        </button>
      </form>
    </main>
  )
}
