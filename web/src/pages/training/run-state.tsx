import type { Provenance } from '../../../../src/core/model.ts'
import { Badge } from '../../parts/parts.tsx'
import type { Tone } from '../../words.ts'
import type { RunState } from './run-rows.ts'

const STATES: Readonly<Record<RunState, { readonly words: string; readonly tone: Tone }>> = {
  running: { words: 'running', tone: 'good' },
  silent: { words: 'silent', tone: 'warning' },
  success: { words: 'finished', tone: 'plain' },
  oom: { words: 'out of memory', tone: 'critical' },
  nan: { words: 'NaN', tone: 'critical' },
  killed: { words: 'killed', tone: 'warning' },
  failed: { words: 'failed', tone: 'critical' },
  ended: { words: 'ended', tone: 'muted' },
  /** Its recording is over. */
  unended: { words: 'no end recorded', tone: 'muted' },
}

export function StateBadge({ state, title }: { readonly state: RunState; readonly title?: string }) {
  const { words, tone } = STATES[state]
  return (
    <Badge tone={tone} {...(title === undefined ? {} : { title })}>
      {words}
    </Badge>
  )
}

/** What was not trained here and now says so. */
export function ProvenanceBadge({ of }: { readonly of: Provenance }) {
  if (of === 'live') return null
  return of === 'simulated' ? <Badge tone="simulated">SIMULATED</Badge> : <Badge tone="plain">REPLAY</Badge>
}
