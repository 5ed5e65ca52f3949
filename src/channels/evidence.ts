/** Evidence and moments as people read them. The unit of a figure is the end of its name. */
import { formatDuration, formatMoment } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import { oneLine } from './plain-text.ts'

export interface Fact {
  readonly label: string
  readonly value: string
}

const MOST_FACTS = 24
const KIBI = 1024

function bytes(value: number): string {
  const size = Math.abs(value)
  const [factor, unit] =
    size >= KIBI ** 3 ? [KIBI ** 3, 'GiB'] : size >= KIBI ** 2 ? [KIBI ** 2, 'MiB'] : size >= KIBI ? [KIBI, 'KiB'] : [1, 'B']
  return `${Number((value / factor).toFixed(1))} ${unit}`
}

function figure(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)))
}

const SUFFIXES: readonly (readonly [RegExp, (value: number, now: number) => string])[] = [
  [/_?bytes_per_second$/, (value) => `${bytes(value)}/s`],
  [/_?bytes_per_minute$/, (value) => `${bytes(value)}/min`],
  [/_?bytes_per_hour$/, (value) => `${bytes(value)}/h`],
  [/_?bytes_per_step$/, (value) => `${bytes(value)}/step`],
  [/_?bytes$/, bytes],
  [/_?seconds$/, (value) => (Math.abs(value) < 60 ? `${figure(value)} s` : formatDuration(value * 1000))],
  [/_?ms$/, (value) => (Math.abs(value) < 1000 ? `${figure(value)} ms` : formatDuration(value))],
  [/_?minutes$/, (value) => `${figure(value)} min`],
  [/_?hours$/, (value) => `${figure(value)} h`],
  [/_?ratio$/, (value) => `${figure(value * 100)}%`],
  [/_?percent$/, (value) => `${figure(value)}%`],
  [/_?celsius$/, (value) => `${figure(value)} °C`],
  [/_?watts$/, (value) => `${figure(value)} W`],
  [/_?hertz$/, (value) => `${figure(value / 1e6)} MHz`],
  [/_?mb$/, (value) => bytes(value * KIBI ** 2)],
  [/_at$/, (value, now) => moment(value, now)],
]

export function evidenceFacts(evidence: Finding['evidence'], now: number): Fact[] {
  const facts = Object.entries(evidence).slice(0, MOST_FACTS)
  return facts.flatMap(([name, value]) => {
    if (value === null || value === '') return []
    const suffix = typeof value === 'number' ? SUFFIXES.find(([end]) => end.test(name)) : undefined
    const stem = suffix ? name.replace(suffix[0], '') : name
    const label = oneLine(stem === '' ? name : stem, 60).replaceAll('_', ' ')
    return [{ label, value: typeof value === 'number' ? (suffix?.[1](value, now) ?? figure(value)) : said(value) }]
  })
}

function said(value: string | boolean): string {
  return typeof value === 'string' ? oneLine(value, 200) : value ? 'yes' : 'no'
}

/** `2026-03-01 02:10:05 +01:00 (25 min ago)`: the host's own clock, with what it is ahead of UTC. */
export function moment(at: number, now: number): string {
  const told = formatMoment(at)
  if (told === 'unknown') return told
  const away = now - at
  const distance = Math.abs(away) < 1000 ? 'now' : away > 0 ? `${formatDuration(away)} ago` : `in ${formatDuration(-away)}`
  return `${told} (${distance})`
}
