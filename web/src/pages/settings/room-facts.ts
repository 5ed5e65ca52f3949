/** What a part of the agent says of its health, as lines for people, whatever the part is. */
import { NOT_AVAILABLE } from '../../../../src/core/format.ts'
import { clockTime, formatAge, formatBytes } from '../../words.ts'

export interface RoomFact {
  readonly label: string
  readonly value: string
}

/** Nested figures are named by their way: `alerts firing`. Lists of things are left to who knows them. */
export function roomFacts(room: unknown, now: number, path = ''): readonly RoomFact[] {
  if (typeof room !== 'object' || room === null) return []
  return Object.entries(room).flatMap(([name, value]): readonly RoomFact[] => {
    const label = `${path}${wordsOf(name)}`
    if (Array.isArray(value)) return value.every(isPlain) ? [{ label, value: value.length === 0 ? 'none' : value.join(', ') }] : []
    if (typeof value === 'object' && value !== null) return roomFacts(value, now, `${label} `)
    return [{ label: label.replace(/ (bytes|ms)$/, ''), value: valueText(name, value, now) }]
  })
}

function isPlain(value: unknown): boolean {
  return typeof value !== 'object'
}

function wordsOf(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
}

function valueText(name: string, value: unknown, now: number): string {
  if (value === null || value === undefined) return /reason|fault/i.test(name) ? 'none' : NOT_AVAILABLE
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'number') return String(value)
  if (/bytes/i.test(name)) return formatBytes(value)
  if (/Ms$/.test(name)) return formatAge(value)
  if (/(At|since)$/.test(name)) return clockTime(value, now)
  return String(value)
}
