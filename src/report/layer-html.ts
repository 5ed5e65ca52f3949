/** The layers of a model that stand out, in a report. */
import { formatCount, formatFigure, formatPercent, NOT_AVAILABLE } from '../core/format.ts'
import { LAYER_FIGURES, type LayerSummary, type Standout } from '../core/layer-figures.ts'
import { escapeHtml, tableHtml } from './html-text.ts'

export function layerTable(summary: LayerSummary | null): string {
  if (summary === null) return ''
  const { layers, looks, standouts } = summary
  const head = `<h2>Layers <span class="faint">${layers}, looked at ${formatCount(looks, 'time')}</span></h2>`
  if (standouts.length === 0) return `${head}<p>None stands out.</p>`
  const rows = standouts.map((one) => [
    one.layer,
    `${one.reason} (${LAYER_FIGURES[one.figure].label.toLowerCase()})`,
    String(one.step),
    valueText(one),
  ])
  const cells = rows.map((row) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`)
  return head + tableHtml('layers', ['Layer', 'What stands out', 'Step', 'Value'], cells)
}

function valueText({ figure, value }: Standout): string {
  if (value === null) return NOT_AVAILABLE
  if (!Number.isFinite(value)) return 'not finite'
  return LAYER_FIGURES[figure].unit === 'ratio' ? formatPercent(value) : formatFigure(value)
}
