/** The evidence of a finding for people. The unit is the end of the name, in either spelling: `heldBytes`, `held_bytes`. */
import { formatBytes, formatDuration, formatFigure, formatPercent } from './format.ts'
import type { Finding } from './model.ts'

export interface EvidenceRow {
  readonly label: string
  readonly value: string
}

type Words = (value: number) => string

const UNITS: readonly (readonly [RegExp, Words])[] = [
  [/ bytes per second$/, (value) => `${formatBytes(value)}/s`],
  [/ bytes per minute$/, (value) => `${formatBytes(value)}/min`],
  [/ bytes per hour$/, (value) => `${formatBytes(value)}/h`],
  [/ bytes per step$/, (value) => `${formatBytes(value)} per step`],
  [/ bytes$/, formatBytes],
  [/ mb$/, (value) => formatBytes(value * 1024 ** 2)],
  [/ ms$/, formatDuration],
  [/ seconds$/, (value) => formatDuration(value * 1000)],
  [/ minutes$/, (value) => formatDuration(value * 60_000)],
  [/ hours$/, (value) => formatDuration(value * 3_600_000)],
  [/ ratio$/, formatPercent],
  [/ percent$/, (value) => formatPercent(value / 100)],
  [/ celsius$/, (value) => `${formatFigure(value)} °C`],
  [/ watts$/, (value) => `${formatFigure(value)} W`],
  [/ hertz$/, (value) => `${formatFigure(value / 1e6)} MHz`],
]

/** `moment` formats a point in time. Unknown values are left out. */
export function evidenceRows(evidence: Finding['evidence'], moment: Words): readonly EvidenceRow[] {
  return Object.entries(evidence).flatMap(([name, value]) => {
    const words = wordsOf(name)
    if (value === null || value === '') return []
    if (typeof value !== 'number') return [{ label: words.trim(), value: typeof value === 'string' ? value : value ? 'yes' : 'no' }]
    const [end, tell] = UNITS.find(([unit]) => unit.test(words)) ?? (/ at$/.test(words) ? [/ at$/, moment] : [/$/, formatFigure])
    return [{ label: words.replace(end, '').trim() || (words.startsWith(' bytes per') ? 'pace' : words.trim()), value: tell(value) }]
  })
}

function wordsOf(name: string): string {
  return ` ${name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()}`
}
