/** As much of PromQL as the tests need to know what an expression is about. */

const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'Inf', 'NaN', 'by', 'without', 'on', 'ignoring'])

/** The metrics that an expression reads. */
export function metricNames(expr: string): string[] {
  const bare = expr
    .replace(/"(?:[^"\\]|\\.)*"/g, '')
    .replace(/\{[^}]*\}/g, ' ')
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
    .replace(/\bgroup_(?:left|right)\b/g, ' ')
    .replace(/\boffset\s+\w+/g, ' ')
  const names = [...bare.matchAll(/(?<![\w.:$])[a-zA-Z_:][\w:]*/g)].filter(({ 0: name, index }) => {
    const next = bare.slice(index + name.length).trimStart()[0]
    return next !== '(' && !KEYWORDS.has(name)
  })
  return [...new Set(names.map(({ 0: name }) => name))]
}

/** What Grafana would put in for its variables. */
export function filledIn(expr: string): string {
  return expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '5m')
    .replaceAll('$gpu_hour_price', '2.5')
    .replaceAll('$kwh_price', '0.3')
    .replaceAll(/\$(host|gpu|run)\b/g, '.*')
}

export interface PanelQuery {
  readonly dashboard: string
  readonly panel: string
  readonly expr: string
}

interface PanelJson {
  readonly title?: string
  readonly targets?: readonly { readonly expr?: string }[]
}

export function panelQueries(name: string, dashboard: { readonly panels?: readonly unknown[] }): PanelQuery[] {
  return (dashboard.panels ?? []).flatMap((panel) => {
    const { title = '', targets = [] } = panel as PanelJson
    return targets.map(({ expr = '' }) => ({ dashboard: name, panel: title, expr }))
  })
}
