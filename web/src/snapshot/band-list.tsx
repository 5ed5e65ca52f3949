import type { Signal } from '@preact/signals'
import type { Band } from '../../../src/core/memory/snapshot-picture.ts'
import { colors } from '../chart/colors.ts'
import { formatBytes } from '../words.ts'
import { bandColors } from './timeline-draw.ts'

/** Positions in the picture, largest first; the rest comes last. */
export function bySize(bands: readonly Band[]): readonly (Band & { readonly band: number })[] {
  return bands
    .map((one, band) => ({ ...one, band }))
    .filter(({ mostBytes }) => mostBytes > 0)
    .sort((a, b) => Number(a.band === bands.length - 1) - Number(b.band === bands.length - 1) || b.mostBytes - a.mostBytes)
}

/** The bands from the largest on; one that is pinned stands out in the picture, and shows its stacks. */
export function BandList({ bands, pinned }: { readonly bands: readonly Band[]; readonly pinned: Signal<number | null> }) {
  const palette = bandColors(colors.value, bands)
  return (
    <ul class="band-list">
      {bySize(bands).map(({ band, name, mostBytes }) => (
        <li key={name}>
          <button
            type="button"
            class="quiet"
            aria-pressed={pinned.value === band}
            onClick={() => {
              pinned.value = pinned.value === band ? null : band
            }}
          >
            <i class="swatch" style={{ background: palette[band] }} />
            <span class="band-name">{name}</span>
            <b>{formatBytes(mostBytes)}</b>
          </button>
        </li>
      ))}
    </ul>
  )
}

export function BandStacks({ band: { name, mostBytes, stacks } }: { readonly band: Band }) {
  return (
    <section class="band-stacks" aria-label="Pinned">
      <h4 class="breakable">
        {name} <span class="faint">at most {formatBytes(mostBytes)} at one time</span>
      </h4>
      {stacks.map(({ bytes, frames }) => (
        <div key={frames.join('\n')}>
          <b>{formatBytes(bytes)}</b>
          <ol class="frames">
            {frames.map((frame, position) => (
              <li key={position}>{frame}</li>
            ))}
          </ol>
        </div>
      ))}
    </section>
  )
}
