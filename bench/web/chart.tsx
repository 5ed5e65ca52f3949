/** Draws a day at one sample a second with the web UI's own chart, and says how long it took from the data to the picture. */
import '../../web/src/style/tokens.css'
import '../../web/src/style/chart.css'
import { render } from 'preact'
import { type ChartSeries, TimeChart } from '../../web/src/chart/time-chart.tsx'

const SECONDS = 86_400
const SERIES = 8

interface Day {
  readonly to: number
  readonly at: readonly number[]
  readonly series: readonly ChartSeries[]
}

let day: Day | null = null

/** Makes up the data: not a part of what is measured. */
function prepare(): void {
  const to = Date.now()
  const at = Array.from({ length: SECONDS }, (_, index) => to - (SECONDS - index) * 1000)
  const series = Array.from({ length: SERIES }, (_, position) => ({
    label: `series ${position + 1}`,
    values: at.map((_, index) => (index % 997 === 0 ? null : Math.sin(index / (300 + position * 70)) + Math.random() * 0.2 + position)),
  }))
  day = { to, at, series }
}

function measure(): Promise<number> {
  if (!day) throw new Error('prepare() comes first')
  const { to, at, series } = day
  const root = document.createElement('div')
  document.getElementById('root')?.replaceChildren(root)
  return new Promise((resolve) => {
    const began = performance.now()
    render(
      <TimeChart title="A day" at={at} series={series} from={to - SECONDS * 1000} to={to} format={(value) => String(value)} height={320} />,
      root,
    )
    const look = () => {
      const canvas = root.querySelector('canvas')
      const isDrawn = canvas
        ?.getContext('2d')
        ?.getImageData(0, 0, canvas.width, canvas.height)
        .data.some((byte) => byte !== 0)
      if (isDrawn) resolve(performance.now() - began)
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
}

Object.assign(globalThis, { prepare, measure })
