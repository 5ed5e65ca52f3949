/** What every dashboard has: variables for data source, host, GPU and run, links to the others, and no uid of anybody's data source. */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard'
import { DATASOURCE } from './panels.ts'

/** Label matchers from the selection at the top of the dashboard. */
export const ON_HOST = 'instance=~"$host"'
export const ON_GPU = `${ON_HOST},gpu=~"$gpu"`
/** Without MIG instances, whose memory is their card's: for sums. */
export const ON_CARD = `${ON_GPU},gpu!~".+:.+"`
export const OF_RUN = `${ON_HOST},run=~"$run"`

const TAG = 'gpuwarden'

export interface Row {
  readonly title: string
  readonly panels: readonly Builder<dashboard.Panel>[]
}

export interface BoardSpec {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly range: string
  readonly rows: readonly Row[]
  /** Figures that a person types in: prices. */
  readonly figures?: readonly { readonly name: string; readonly label: string; readonly value: string; readonly description: string }[]
}

function query(name: string, label: string, definition: string): dashboard.QueryVariableBuilder {
  return new dashboard.QueryVariableBuilder(name)
    .label(label)
    .datasource(DATASOURCE)
    .query({ query: definition, refId: 'StandardVariableQuery' })
    .definition(definition)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(dashboard.VariableSort.NaturalAsc)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ selected: true, text: ['All'], value: ['$__all'] })
}

export const VARIABLE_QUERIES = {
  host: 'label_values(gpuwarden_build_info, instance)',
  gpu: `label_values(gpu_info{${ON_HOST}}, gpu)`,
  run: `label_values(training_steps_total{${ON_HOST}}, run)`,
} as const

export function board({ uid, title, description, range, rows, figures = [] }: BoardSpec): dashboard.Dashboard {
  const builder = new dashboard.DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([TAG])
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .refresh('30s')
    .time({ from: `now-${range}`, to: 'now' })
    .timezone('browser')
    .editable()
    .link(
      new dashboard.DashboardLinkBuilder('gpuwarden')
        .type(dashboard.DashboardLinkType.Dashboards)
        .tags([TAG])
        .asDropdown(false)
        .includeVars(true)
        .keepTime(true),
    )
    .withVariable(new dashboard.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(query('host', 'Host', VARIABLE_QUERIES.host))
    .withVariable(query('gpu', 'GPU', VARIABLE_QUERIES.gpu))
    .withVariable(query('run', 'Run', VARIABLE_QUERIES.run))
  for (const figure of figures)
    builder.withVariable(
      new dashboard.TextBoxVariableBuilder(figure.name)
        .label(figure.label)
        .description(figure.description)
        .defaultValue(figure.value)
        .current({ selected: true, text: figure.value, value: figure.value }),
    )
  for (const row of rows) {
    builder.withRow(new dashboard.RowBuilder(row.title))
    for (const panel of row.panels) builder.withPanel(panel)
  }
  return numbered(builder.build())
}

/** Panels need numbers of their own; counting gives the same ones every time. */
function numbered(built: dashboard.Dashboard): dashboard.Dashboard {
  return { ...built, id: null, version: 1, panels: (built.panels ?? []).map((panel, at) => ({ ...panel, id: at + 1 })) }
}
