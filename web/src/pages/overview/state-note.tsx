/** Says in so many words when what a card shows is not the present. */
import type { Freshness } from '../../live/freshness.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { isReplay } from '../../live/store.ts'
import { formatAge, type Tone } from '../../words.ts'

const NAMES: Readonly<Record<Freshness['kind'], { readonly name: string; readonly tone: Tone }>> = {
  live: { name: 'live', tone: 'good' },
  waiting: { name: 'waiting', tone: 'muted' },
  unreachable: { name: 'no connection', tone: 'critical' },
  not_responding: { name: 'not responding', tone: 'critical' },
  stale: { name: 'stale', tone: 'warning' },
  lost: { name: 'lost', tone: 'critical' },
  trouble: { name: 'problem', tone: 'warning' },
}

/** A GPU that is lost is still asked: then its age says nothing. */
const FRESH_MS = 3000

/** As large as the picture whose place it takes, so that nothing moves. */
export function StateNote({ cell, freshness }: { readonly cell: GpuCell; readonly freshness: Freshness }) {
  const { name, tone } = NAMES[freshness.kind]
  const words = freshness.kind === 'waiting' ? 'No sample yet' : freshness.kind === 'live' ? '' : freshness.words
  return (
    <p class={`state-note ${tone}`} role="status" title={words}>
      <strong>{name}</strong>
      <span class="state-words">{words}</span>
      <Age cell={cell} />
    </p>
  )
}

export function StateBadge({ cell, freshness }: { readonly cell: GpuCell; readonly freshness: Freshness }) {
  const { name, tone } = NAMES[freshness.kind]
  if (freshness.kind === 'live') return <span class="faint tiny">{isReplay.value ? 'recorded' : 'live'}</span>
  return (
    <span class={`badge ${tone}`} title={'words' in freshness ? freshness.words : 'No sample yet'}>
      {name.toUpperCase()} <Age cell={cell} />
    </span>
  )
}

/** By itself, so that only it is drawn again each second. */
function Age({ cell }: { readonly cell: GpuCell }) {
  const age = cell.view.value.ageMs
  return age === null || age < FRESH_MS ? null : <span class="nowrap">{formatAge(age)} old</span>
}
