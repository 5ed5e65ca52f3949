/** Where else to look: metrics, the API, Grafana, the documentation; and who is signed in. */
import { useState } from 'preact/hooks'
import type { GrafanaAnswer } from '../../answers.ts'
import { ask, inWords, session, signOut } from '../../api.ts'
import { now } from '../../live/agent-clock.ts'
import { hostname, version } from '../../live/store.ts'
import { Fact, Fault, Panel } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { zoneName } from '../../words.ts'

export function LinksPanel() {
  const { answer, fault } = usePolled('grafana', (signal) => ask<GrafanaAnswer>('/api/v1/grafana', {}, { signal }), null).value
  return (
    <Panel title="Elsewhere">
      <dl class="links">
        <div>
          <dt>
            <a href="/metrics">/metrics</a>
          </dt>
          <dd>for Prometheus, VictoriaMetrics and others</dd>
        </div>
        <div>
          <dt>
            <a href="/openapi.json">/openapi.json</a>
          </dt>
          <dd>the API of this agent</dd>
        </div>
        {answer?.files.map(({ name, title, url }) => (
          <div key={name}>
            <dt>
              <a href={url} download={name}>
                {title}
              </a>
            </dt>
            <dd>Grafana dashboard, to import there</dd>
          </div>
        ))}
        <div>
          <dt>Documentation</dt>
          <dd>
            in the package, folder <code>docs/</code>: configuration, alerts, memory, training, metrics; and <code>gpuwarden help</code>
          </dd>
        </div>
      </dl>
      <Fault text={fault} />
    </Panel>
  )
}

export function AboutPanel() {
  const [fault, setFault] = useState<string | null>(null)
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches
  const known = session.value
  return (
    <Panel title="This page">
      <div class="facts">
        <Fact label="Version">{version.value || known?.version}</Fact>
        <Fact label="Host">{hostname.value || known?.hostname}</Fact>
        <Fact label="Times in">{zoneName(now.peek())}</Fact>
        <Fact label="Colors" title="Set in the browser or the system; the page follows at once">
          {isDark ? 'dark' : 'light'} <small class="faint">as your system prefers</small>
        </Fact>
      </div>
      {known?.required ? (
        <div class="toolbar">
          <span class="small faint">You are signed in with the agent's token{known.canKill ? ', and may end processes' : ''}.</span>
          <button type="button" onClick={() => void signOut().catch((error: unknown) => setFault(inWords(error)))}>
            Sign out
          </button>
        </div>
      ) : (
        <p class="small faint">This agent needs no token: it answers only this machine.</p>
      )}
      <Fault text={fault} />
    </Panel>
  )
}
