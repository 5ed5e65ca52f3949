/** The kinds of panels, with the options that all panels of a kind share. */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import * as common from '@grafana/grafana-foundation-sdk/common'
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard'
import { PanelBuilder as Gauge } from '@grafana/grafana-foundation-sdk/gauge'
import * as heatmap from '@grafana/grafana-foundation-sdk/heatmap'
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as Stat } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as Table } from '@grafana/grafana-foundation-sdk/table'
import { PanelBuilder as TimeSeries } from '@grafana/grafana-foundation-sdk/timeseries'

// biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana's placeholder, not ours.
export const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const

export interface Query {
  readonly expr: string
  readonly legend?: string
}

export interface Step {
  /** null: from the bottom. */
  readonly from: number | null
  readonly color: string
}

export interface PanelSpec {
  readonly title: string
  readonly description: string
  readonly queries: readonly Query[]
  readonly unit: string
  readonly width: number
  readonly height?: number
  readonly min?: number
  readonly max?: number
  readonly decimals?: number
  readonly steps?: readonly Step[]
  /** Shown when there is no data. */
  readonly nothing?: string
}

const HEIGHT = 8

/** What is common to every builder; their classes have no common parent. */
interface Common<Self> {
  title(title: string): Self
  description(text: string): Self
  datasource(ref: common.DataSourceRef): Self
  unit(unit: string): Self
  span(width: number): Self
  height(height: number): Self
  min(min: number): Self
  max(max: number): Self
  decimals(decimals: number): Self
  noValue(text: string): Self
  thresholds(config: Builder<dashboard.ThresholdsConfig>): Self
  withTarget(target: DataqueryBuilder): Self
}

function dress<Self extends Common<Self>>(panel: Self, spec: PanelSpec, shape: (query: DataqueryBuilder) => DataqueryBuilder): Self {
  const { title, description, unit, width, height = HEIGHT, min, max, decimals, steps = [{ from: null, color: 'green' }], nothing } = spec
  panel.title(title).description(description).datasource(DATASOURCE).unit(unit).span(width).height(height)
  if (min !== undefined) panel.min(min)
  if (max !== undefined) panel.max(max)
  if (decimals !== undefined) panel.decimals(decimals)
  if (nothing !== undefined) panel.noValue(nothing)
  panel.thresholds(thresholds(steps))
  spec.queries.forEach(({ expr, legend = '' }, at) => {
    const query = new DataqueryBuilder()
      .datasource(DATASOURCE)
      .expr(expr)
      .legendFormat(legend)
      .refId(String.fromCharCode(65 + at))
    panel.withTarget(shape(query))
  })
  return panel
}

function thresholds(steps: readonly Step[]): dashboard.ThresholdsConfigBuilder {
  return new dashboard.ThresholdsConfigBuilder()
    .mode(dashboard.ThresholdsMode.Absolute)
    .steps(steps.map(({ from, color }) => ({ value: from, color })))
}

const lastValue = () => new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields('').values(false)

export function lines(spec: PanelSpec): TimeSeries {
  const panel = dress(new TimeSeries(), spec, (query) => query.range())
    .lineWidth(1)
    .fillOpacity(spec.queries.length === 1 ? 8 : 0)
    .showPoints(common.VisibilityMode.Never)
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.Table)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(['lastNotNull', 'max']),
    )
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending))
  return spec.steps === undefined
    ? panel
    : panel.thresholdsStyle(new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed))
}

export function stacked(spec: PanelSpec): TimeSeries {
  return lines(spec).fillOpacity(25).stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal).group('A'))
}

export function gauge(spec: PanelSpec): Gauge {
  return dress(new Gauge(), spec, (query) => query.instant())
    .showThresholdMarkers(true)
    .reduceOptions(lastValue())
}

export function figure(spec: PanelSpec): Stat {
  return dress(new Stat(), { height: 4, ...spec }, (query) => query.instant())
    .graphMode(common.BigValueGraphMode.None)
    .colorMode(common.BigValueColorMode.Value)
    .reduceOptions(lastValue())
}

/** A histogram over time. */
export function buckets(spec: PanelSpec): heatmap.PanelBuilder {
  return dress(new heatmap.PanelBuilder(), spec, (query) => query.range().format(PromQueryFormat.Heatmap))
    .calculate(false)
    .color(new heatmap.HeatmapColorOptionsBuilder().mode(heatmap.HeatmapColorMode.Scheme).scheme('Turbo').steps(64))
    .yAxis(new heatmap.YAxisConfigBuilder().unit(spec.unit))
}

/** One row for each set of labels, one column for each query, named by its legend. */
export function table(spec: PanelSpec, hidden: readonly string[] = []): Table {
  const names = Object.fromEntries(spec.queries.map(({ legend = '' }, at) => [`Value #${String.fromCharCode(65 + at)}`, legend]))
  const single = spec.queries.length === 1 ? { Value: spec.queries[0]?.legend ?? '' } : {}
  return dress(new Table(), spec, (query) => query.instant().format(PromQueryFormat.Table))
    .withTransformation({ id: 'merge', options: {} })
    .withTransformation({
      id: 'organize',
      options: {
        excludeByName: Object.fromEntries(['Time', 'job', '__name__', ...hidden].map((name) => [name, true])),
        renameByName: { ...names, ...single },
      },
    })
}
