/** For pages about one GPU: choosing another, and what is to be said before its figures. */
import type { GpuCell } from '../live/gpu-cell.ts'
import { gpus } from '../live/store.ts'
import { formatAge, shortModel } from '../words.ts'

export function GpuChoice({ current, onChoose }: { readonly current: string; readonly onChoose: (label: string) => void }) {
  if (gpus.value.length < 2) return null
  return (
    <label>
      GPU
      <select value={current} onChange={(event) => onChoose(event.currentTarget.value)}>
        {gpus.value.map(({ id, info }) => (
          <option key={id} value={info.value.label}>
            {info.value.label} · {shortModel(info.value)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Nothing while figures are live: a stale one never looks live. */
export function GpuNotice({ cell }: { readonly cell: GpuCell }) {
  const freshness = cell.freshness.value
  if (freshness.kind === 'live') return null
  if (freshness.kind === 'waiting') return <p class="banner info">Waiting for the first readings of this GPU.</p>
  return (
    <p class="banner critical" role="alert">
      <strong>{freshness.words}</strong>
      <Age cell={cell} />
    </p>
  )
}

function Age({ cell }: { readonly cell: GpuCell }) {
  const age = cell.view.value.ageMs
  return <span>{age === null ? 'No readings at all.' : `The last readings are ${formatAge(age)} old.`}</span>
}
