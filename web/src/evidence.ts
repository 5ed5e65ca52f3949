/** What a finding rests on, as people read it. The unit of a figure is the end of its name. */
import type { Finding } from '../../src/core/model.ts'
import { clockTime, figure, formatBytes, formatDuration } from './words.ts'

export interface EvidenceRow {
  readonly label: string
  readonly value: string
}

const MEBIBYTE = 1024 ** 2

function bytes(value: number): string {
  const size = Math.abs(value)
  const text = size >= MEBIBYTE ? formatBytes(size) : size >= 1024 ? `${Math.round(size / 1024)} KiB` : `${Math.round(size)} B`
  return value < 0 ? `−${text}` : text
}

const UNITS: readonly (readonly [RegExp, (value: number, now: number) => string])[] = [
  [/ bytes per second$/, (value) => `${bytes(value)}/s`],
  [/ bytes per minute$/, (value) => `${bytes(value)}/min`],
  [/ bytes per step$/, (value) => `${bytes(value)} per step`],
  [/ bytes$/, bytes],
  [/ seconds$/, (value) => (Math.abs(value) < 60 ? `${figure(value)} s` : formatDuration(value * 1000))],
  [/ ms$/, (value) => (Math.abs(value) < 1000 ? `${figure(value)} ms` : formatDuration(value))],
  [/ ratio$/, (value) => `${figure(value * 100)} %`],
  [/ percent$/, (value) => `${figure(value)} %`],
  [/ celsius$/, (value) => `${figure(value)} °C`],
  [/ watts$/, (value) => `${figure(value)} W`],
  [/ hertz$/, (value) => `${figure(value / 1e6)} MHz`],
  [/ at$/, (value, now) => clockTime(value, now)],
]

/** `bytesPerSecond` → ` bytes per second`: both spellings of names become words. */
function wordsOf(name: string): string {
  return ` ${name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()}`
}

/** Names that say where in the program it is. */
const PLACES = new Set(['line', 'guilty line', 'location', 'stack', 'frame', 'culprit'])

export function evidenceRows(evidence: Finding['evidence'], now: number): readonly EvidenceRow[] {
  return Object.entries(evidence).flatMap(([name, value]) => {
    const words = wordsOf(name)
    if (value === null || value === '' || PLACES.has(words.trim())) return []
    const unit = typeof value === 'number' ? UNITS.find(([end]) => end.test(words)) : undefined
    const label = (unit ? words.replace(unit[0], '') : words).trim()
    const text =
      typeof value === 'number' ? (unit?.[1](value, now) ?? figure(value)) : typeof value === 'boolean' ? (value ? 'yes' : 'no') : value
    return [{ label: label === '' ? 'pace' : label, value: text }]
  })
}

/** The line of the program that is to blame, where the evidence names one. */
export function guiltyLine(evidence: Finding['evidence']): string | null {
  for (const [name, value] of Object.entries(evidence))
    if (PLACES.has(wordsOf(name).trim()) && typeof value === 'string' && value !== '') return value
  return null
}
