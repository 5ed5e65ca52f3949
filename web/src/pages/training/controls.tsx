/** How curves are shown: kept in the address, so that a link shows the same. */
import { useState } from 'preact/hooks'
import { setQuery } from '../../location.ts'
import { formatPercent } from '../../words.ts'
import { MOST_SMOOTHING } from './smoothing.ts'

/** The address changes when the handle is let go: browsers do not like it changed sixty times a second. */
export function SmoothingSlider({ value, onMove }: { readonly value: number; readonly onMove: (value: number | null) => void }) {
  const [moving, setMoving] = useState<number | null>(null)
  const shown = moving ?? value
  return (
    <label class="smoothing">
      Smoothing
      <input
        type="range"
        min={0}
        max={MOST_SMOOTHING}
        step={0.01}
        value={shown}
        aria-valuetext={formatPercent(shown)}
        onInput={(event) => {
          const weight = Number(event.currentTarget.value)
          setMoving(weight)
          onMove(weight)
        }}
        onChange={(event) => {
          setMoving(null)
          onMove(null)
          setQuery({ smooth: event.currentTarget.value })
        }}
      />
      <output>{shown.toFixed(2)}</output>
    </label>
  )
}

export function LogSwitch({ isOn }: { readonly isOn: boolean }) {
  return (
    <label>
      <input type="checkbox" checked={isOn} onChange={() => setQuery({ log: isOn ? null : '1' })} />
      Log scale
    </label>
  )
}
