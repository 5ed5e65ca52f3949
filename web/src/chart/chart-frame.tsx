/** Around a chart: its title, legend with the figures under the crosshair, marks in words, export, and the keyboard. */
import type { RefObject } from 'preact'
import type uPlot from 'uplot'
import { clockTime } from '../words.ts'
import { saveCsv, savePng } from './export.ts'
import { KEYS_TEXT, onChartKey } from './keys.ts'
import { lastFigure } from './options.ts'
import { seriesClass } from './palette.ts'
import type { TimeChartProps } from './time-chart.tsx'
import { momentText } from './time-ticks.ts'

interface FrameProps extends TimeChartProps {
  readonly plot: RefObject<uPlot | null>
  readonly box: RefObject<HTMLDivElement | null>
  readonly legend: RefObject<HTMLDivElement | null>
  readonly height: number
  readonly isEmpty: boolean
}

export function ChartFrame(props: FrameProps) {
  const { title, series, format, plot, box, legend, height, isEmpty } = props
  const said = series.map((one) => `${one.label} ${format(lastFigure(one))}`).join(', ')
  const near = (props.hasMarkList === false ? [] : (props.marks ?? [])).filter(({ at }) => at >= props.from && at <= props.to)
  return (
    <figure class="chart">
      <figcaption class="chart-head">
        <h3 class="chart-title">{title}</h3>
        <div class="chart-tools">
          <button type="button" class="quiet" title="Save the data as CSV" disabled={isEmpty} onClick={() => saveCsv(props)}>
            CSV
          </button>
          <button
            type="button"
            class="quiet"
            title="Save the chart as PNG"
            disabled={isEmpty}
            onClick={() => plot.current && savePng(plot.current, props)}
          >
            PNG
          </button>
        </div>
      </figcaption>
      <div class="chart-legend" ref={legend}>
        {series.map((one, index) => (
          <span class="legend-item" key={one.label}>
            <i class={`swatch ${seriesClass(one.color ?? index)}${one.dash ? ' dashed' : ''}`} />
            {one.label} <b data-value>{format(lastFigure(one))}</b>
          </span>
        ))}
        <span class="legend-moment" data-moment />
      </div>
      {isEmpty ? (
        <p class="chart-empty" style={{ height: `${height}px` }}>
          {props.empty ?? 'No readings in this time range.'}
        </p>
      ) : (
        <div
          class="chart-box"
          ref={box}
          role="img"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the crosshair moves with the arrow keys
          tabIndex={0}
          aria-label={`${title}. Latest: ${said}. ${KEYS_TEXT}`}
          style={{ height: `${height}px` }}
          onKeyDown={(event) => plot.current && onChartKey(event, plot.current, props)}
        />
      )}
      {near.length > 0 && (
        <ul class="chart-marks">
          {near.slice(-6).map((mark) => (
            <li key={`${mark.at}${mark.label}`} class={`tone-${mark.tone}`}>
              <span>{(props.x ?? 'time') === 'time' ? clockTime(mark.at, props.to) : momentText(mark.at, props.x ?? 'time')}</span>{' '}
              {mark.label}
            </li>
          ))}
        </ul>
      )}
    </figure>
  )
}
