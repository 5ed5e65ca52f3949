/** A chart inside an element: as wide as that is, until it is removed. */
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { type ChartData, chartOptions, writeLegend } from './options.ts'
import type { ChartColors } from './palette.ts'
import type { TimeChartProps } from './time-chart.tsx'

export const USUAL_HEIGHT_PX = 180

const LEAST_WIDTH_PX = 120

export interface ChartMount {
  readonly box: HTMLElement
  /** What it shows at this moment. */
  readonly current: () => TimeChartProps
  readonly data: ChartData
  readonly palette: ChartColors
  readonly height: number
  readonly legend: { readonly current: HTMLElement | null }
}

export interface MountedChart {
  readonly plot: uPlot
  /** After its figures, its span or its marks have changed. */
  readonly update: (data: ChartData) => void
  readonly remove: () => void
}

export function mountChart({ box, current, data, palette, height, legend }: ChartMount): MountedChart {
  const size = () => ({ width: Math.max(LEAST_WIDTH_PX, box.clientWidth), height })
  const plot = new uPlot(chartOptions(current, palette, size(), legend), data.columns as uPlot.AlignedData, box)
  const observer = new ResizeObserver(() => plot.setSize(size()))
  observer.observe(box)
  return {
    plot,
    update: (latest) => {
      plot.batch(() => {
        plot.setData(latest.columns as uPlot.AlignedData, false)
        plot.setScale('x', { min: current().from, max: current().to })
      })
      // The crosshair writes into the legend past the page; so does this, or the figures would stand still.
      writeLegend(plot, current(), legend.current)
    },
    remove: () => {
      observer.disconnect()
      plot.destroy()
    },
  }
}
