/** A comparison in words, as text and as one HTML file. */
import { formatBytes, formatDuration, formatFigure, formatPercent, formatSeconds, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { Reading } from '../core/model.ts'
import { ALIKE_RATIO, type ComparedFigure, type ComparedPhase, type Comparison, type FigureKind } from './comparison.ts'
import { htmlPage } from './html-page.ts'
import { escapeHtml, tableHtml, timeHtml } from './html-text.ts'
import { energyText, runEnding } from './training-text.ts'

/** `B is 1.4 times as fast as A by tokens a second: in a step it waits 120 ms less for data.` */
export function verdictText(comparison: Comparison): string {
  const { speedRatio, speedBy, reasons, per, phases } = comparison
  if (speedRatio === null || speedBy === null) return 'Which is faster is not known: they have no pace in common.'
  const by = `by ${speedBy} a second`
  if (Math.abs(speedRatio - 1) < ALIKE_RATIO) return `Both are as fast (${by}).`
  const [fast, slow] = speedRatio > 1 ? ['B', 'A'] : ['A', 'B']
  const ratio = speedRatio > 1 ? speedRatio : 1 / speedRatio
  const head = `${fast} is ${ratio < 10 ? ratio.toFixed(2) : formatFigure(ratio)} times as fast as ${slow} (${by})`
  if (reasons.length === 0) return phases.length === 0 ? `${head}. No phases were measured, so nothing says why.` : `${head}.`
  const why = reasons.map(
    (reason) => `${formatSeconds(Math.abs(reason.moreSeconds))} less for ${PHASE_WORDS[reason.phase] ?? reason.phase}`,
  )
  return `${head}. Per ${per} it takes ${why.join(', ')}.`
}

const PHASE_WORDS: Readonly<Record<string, string>> = {
  data: 'waiting for data',
  copy: 'copies to the GPU',
  sync: 'waiting for other ranks',
  forward: 'the forward',
  backward: 'the backward',
  forward_backward: 'forward and backward',
  optimizer: 'the optimizer',
  checkpoint: 'checkpoints',
  'not attributed': 'what no phase explains',
}

const FORMATS: Readonly<Record<FigureKind, (value: number) => string>> = {
  figure: formatFigure,
  seconds: formatSeconds,
  bytes: formatBytes,
  ratio: formatPercent,
  dollars: (value) => `$${value >= 0.01 || value === 0 ? value.toFixed(2) : value.toPrecision(2)}`,
  joules: (value) => (value >= 1000 ? `${formatFigure(value / 1000)} kJ` : `${formatFigure(value)} J`),
  'kilowatt hours': energyText,
  duration: formatDuration,
}

type Cells = readonly [name: string, a: string, b: string, note: string]

function figureCells({ name, kind, a, b, better }: ComparedFigure): Cells {
  const text = (value: Reading) => (value === null ? NOT_AVAILABLE : FORMATS[kind](value))
  return [name, text(a), text(b), better === null ? '' : `${better.toUpperCase()} is better${changeText(a, b)}`]
}

function changeText(a: Reading, b: Reading): string {
  return a === null || b === null || a === 0 ? '' : `, B ${b > a ? '+' : '−'}${formatPercent(Math.abs(b / a - 1))}`
}

function phaseCells({ phase, aSeconds, bSeconds, moreSeconds }: ComparedPhase): Cells {
  const isAlike = Math.abs(moreSeconds) < ALIKE_RATIO * Math.max(aSeconds ?? 0, bSeconds ?? 0)
  const note = isAlike ? '' : `B ${moreSeconds > 0 ? '+' : '−'}${formatSeconds(Math.abs(moreSeconds))}`
  return [phase, formatSeconds(aSeconds), formatSeconds(bSeconds), note]
}

function parts(comparison: Comparison): readonly (readonly [title: string, rows: readonly Cells[]])[] {
  const { figures, phases, per, loss, hyperparameters } = comparison
  const all: readonly (readonly [string, readonly Cells[]])[] = [
    ['Figures', figures.map(figureCells)],
    [`Phases, per ${per}`, phases.map(phaseCells)],
    ['Loss', loss === null ? [] : [[`at step ${loss.step}`, formatFigure(loss.a), formatFigure(loss.b), '']]],
    ['Hyperparameters that differ', hyperparameters.map(({ name, a, b }): Cells => [name, valueText(a), valueText(b), ''])],
  ]
  return all.filter(([, rows]) => rows.length > 0)
}

function valueText(value: unknown): string {
  return value === null || value === undefined ? NOT_AVAILABLE : typeof value === 'string' ? value : JSON.stringify(value)
}

export function comparisonText(comparison: Comparison): string {
  const { a, b, notes } = comparison
  const lines = ['gpuwarden · compare', `  A  ${sideText(a)}`, `  B  ${sideText(b)}`, '', `  ${verdictText(comparison)}`]
  for (const [title, rows] of parts(comparison)) {
    const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => printable(row[column] ?? '').length), column === 0 ? 0 : 1))
    const row = (cells: readonly string[]) =>
      `  ${cells.map((cell, column) => (column === 0 || column > 2 ? printable(cell).padEnd(widths[column] ?? 0) : printable(cell).padStart(widths[column] ?? 0))).join('  ')}`.trimEnd()
    lines.push('', `  ${title}`, row(['', 'A', 'B', '']), ...rows.map(row))
  }
  if (notes.length > 0) lines.push('', ...notes.map((note) => `  note  ${printable(note)}`))
  return lines.join('\n')
}

function sideText({ title, runId, outcome }: Comparison['a']): string {
  return `${printable(title)}${runId === null ? '' : ` (${printable(runId)})`}${outcome === null ? '' : `: ${runEnding(outcome)}`}`
}

export function comparisonHtml(comparison: Comparison, version: string, generatedAt: number): string {
  const { a, b, notes } = comparison
  const cells = (row: Cells) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`
  const tables = parts(comparison).map(
    ([title, rows]) => `<h2>${escapeHtml(title)}</h2>${tableHtml('figures', ['', 'A', 'B', ''], rows.map(cells))}`,
  )
  const side = (letter: string, one: Comparison['a']) =>
    `<p><b>${letter}</b> ${escapeHtml(sideText(one))} <span class="faint">${timeHtml(one.from, one.to)}</span></p>`
  return htmlPage({
    title: `${a.title} and ${b.title}`,
    head: '',
    body: `${side('A', a)}${side('B', b)}<p class="note">${escapeHtml(verdictText(comparison))}</p>${tables.join('')}
${notes.map((note) => `<p class="faint">${escapeHtml(note)}</p>`).join('')}`,
    notes: '',
    version,
    generatedAt,
    data: { from: a.from, to: a.to, times: { firstAt: a.from, stepMs: 1000, count: 0 }, marks: [], charts: [] },
  })
}
