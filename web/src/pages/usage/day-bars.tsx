/** A bar per day, stacked by who held the GPUs; what nobody held stands pale on top. */
import { useState } from 'preact/hooks'
import type { UsageDays } from '../../answers.ts'
import { niceTop } from './day-scale.ts'
import { amount } from './figures.ts'

const HEIGHT = 200
const WIDTH = 1000

export function DayBars({ days }: { readonly days: UsageDays }) {
  const [shown, setShown] = useState<number | null>(null)
  const { at, series, freeHours } = days
  const held = at.map((_, day) => series.reduce((sum, { gpuHours }) => sum + (gpuHours[day] ?? 0), 0))
  const top = niceTop(Math.max(...at.map((_, day) => (held[day] ?? 0) + (freeHours[day] ?? 0)), 0.01))
  const slot = WIDTH / at.length
  const gap = Math.min(6, slot * 0.15)
  const day = shown ?? at.length - 1
  return (
    <div class="usage-bars">
      <div class="usage-plot">
        <div class="usage-scale tiny faint" aria-hidden="true">
          <span>{amount(top)} h</span>
          <span>{amount(top / 2)}</span>
          <span>0</span>
        </div>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label="GPU-hours per day"
          onMouseLeave={() => setShown(null)}
        >
          <path class="usage-grid" d={`M0 ${HEIGHT / 2}H${WIDTH}M0 .5H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {at.map((name, index) => {
            let below = 0
            const bar = (hours: number, fill: string, key: string) => {
              const height = (hours / top) * HEIGHT
              below += height
              return (
                hours > 0 && (
                  <rect
                    key={key}
                    class={fill === '' ? 'usage-free' : undefined}
                    style={fill === '' ? undefined : { fill }}
                    x={index * slot + gap / 2}
                    y={HEIGHT - below}
                    width={slot - gap}
                    height={height}
                  />
                )
              )
            }
            return (
              // biome-ignore lint/a11y/noStaticElementInteractions: the table of the day below says the same
              <g key={name} class={shown === index ? 'shown' : ''} onMouseEnter={() => setShown(index)} onClick={() => setShown(index)}>
                <rect class="usage-slot" x={index * slot} y={0} width={slot} height={HEIGHT} />
                {series.map(({ gpuHours, label }, position) => bar(gpuHours[index] ?? 0, `var(--series-${(position % 8) + 1})`, label))}
                {bar(freeHours[index] ?? 0, '', 'free')}
              </g>
            )
          })}
        </svg>
        <div class="usage-days tiny faint" aria-hidden="true">
          <span>{at[0]}</span>
          {at.length > 1 && <span>{at.at(-1)}</span>}
        </div>
      </div>
      <ul class="usage-legend small" aria-label={`GPU-hours on ${at[day] ?? ''}`}>
        <li class="faint">{at[day]}</li>
        {series.map(({ label, gpuHours }, position) => (
          <li key={label}>
            <i class={`swatch fill-${(position % 8) + 1}`} /> {label} <b>{amount(gpuHours[day] ?? 0)} h</b>
          </li>
        ))}
        <li>
          <i class="swatch usage-free" /> free <b>{amount(freeHours[day] ?? 0)} h</b>
        </li>
      </ul>
    </div>
  )
}
