import { printable } from '../../core/format.ts'
import type { Snapshot } from '../read/read-snapshot.ts'
import { counted } from './words.ts'

/** What a reader has to know before the figures. */
export function notesOf(file: string, { cut, tables, layout }: Snapshot): string[] {
  const notes: string[] = []
  const name = printable(file)
  if (cut !== null)
    notes.push(
      `${name} is cut: ${cut}. It was read up to the last whole event (${counted(tables.events.count, 'event')}); the blocks are of a later moment, so levels may be too high.`,
    )
  const unknown = [...tables.unknownActions].map(([text, count]) => `${printable(tables.texts.text(text))} (${count})`)
  if (unknown.length > 0) notes.push(`Events of unknown kinds were left out: ${unknown.slice(0, 5).join(', ')}.`)
  if (layout.hostSegments.count > 0)
    notes.push(`It also lists ${counted(layout.hostSegments.count, 'segment')} of pinned host memory, which are not judged.`)
  return notes
}
