/** CSV in practice: commas, semicolons or tabs; quotes, with line breaks inside them; any line ends. */
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import { asUtf8 } from './text.ts'

const DELIMITERS = [',', ';', '\t'] as const
export type Delimiter = (typeof DELIMITERS)[number]

/** The most frequent one in the header. */
export function delimiterOf(header: string): Delimiter {
  let best: Delimiter = ','
  let most = 0
  for (const delimiter of DELIMITERS) {
    const count = header.split(delimiter).length - 1
    if (count > most) {
      best = delimiter
      most = count
    }
  }
  return best
}

/** The cells of one line, without quotes and surrounding blanks. */
export function splitRow(line: string, delimiter: Delimiter): string[] {
  if (!line.includes('"')) return line.split(delimiter).map((cell) => cell.trim())
  const rows = new RowSplitter(delimiter)
  const cells = rows.push(`${line}\n`)[0] ?? rows.end()[0] ?? []
  return cells.map((cell) => cell.trim())
}

/** Takes text in pieces and returns complete rows. */
export class RowSplitter {
  readonly #delimiter: string
  #cell = ''
  #row: string[] = []
  #quoted = false
  /** The last character was a quote inside a quoted cell: its end, or the first half of an escaped one. */
  #quote = false

  constructor(delimiter: Delimiter) {
    this.#delimiter = delimiter
  }

  push(text: string): string[][] {
    const rows: string[][] = []
    for (const char of text) {
      if (this.#quoted) {
        if (this.#quote) {
          this.#quote = false
          if (char === '"') {
            this.#cell += '"'
            continue
          }
          this.#quoted = false
        } else {
          if (char === '"') this.#quote = true
          else this.#cell += char
          continue
        }
      }
      if (char === '"' && this.#cell.trim() === '') {
        this.#quoted = true
        this.#cell = ''
      } else if (char === this.#delimiter) this.#endCell()
      else if (char === '\n') this.#endRow(rows)
      else if (char !== '\r') this.#cell += char
    }
    return rows
  }

  /** The rest when the text ended without a line break. */
  end(): string[][] {
    const rows: string[][] = []
    if (this.#cell !== '' || this.#row.length > 0) this.#endRow(rows)
    return rows
  }

  #endCell(): void {
    this.#row.push(this.#cell)
    this.#cell = ''
  }

  #endRow(rows: string[][]): void {
    this.#endCell()
    if (this.#row.length > 1 || this.#row[0]?.trim() !== '') rows.push(this.#row)
    this.#row = []
    this.#quoted = false
    this.#quote = false
  }
}

/** All rows of a file (.csv or .csv.gz), the header first; blank lines are left out. */
export async function* readCsvRows(path: string): AsyncGenerator<string[]> {
  const handle = await open(path)
  try {
    const stream = handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })
    const bytes: AsyncIterable<Buffer> = path.endsWith('.gz') ? stream.pipe(createGunzip()) : stream
    const decoder = new TextDecoder()
    let splitter: RowSplitter | null = null
    let head = ''
    for await (const block of asUtf8(bytes)) {
      let text = decoder.decode(block, { stream: true })
      if (splitter === null) {
        head += text
        const header = head.trimStart()
        if (!header.includes('\n')) continue
        splitter = new RowSplitter(delimiterOf(header.slice(0, header.indexOf('\n'))))
        text = header
      }
      yield* splitter.push(text)
    }
    splitter ??= new RowSplitter(delimiterOf(head))
    if (head !== '' && !head.trimStart().includes('\n')) yield* splitter.push(head)
    yield* splitter.end()
  } finally {
    await handle.close()
  }
}

/** Quoted only where needed. */
export function csvCell(text: string): string {
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const CLOCK = /^(\d{4})[/-](\d{1,2})[/-](\d{1,2})[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?$/

/** `2026/11/15 06:25:38.123` and the like, without a zone, read as UTC: the same on every machine, no hour twice. */
export function parseClock(text: string): number | null {
  const match = CLOCK.exec(text)
  if (match === null) return null
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map((part) => Number(part ?? 0))
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return null
  return Date.UTC(year, month - 1, day, hour, minute, second, Math.floor(Number(`0.${match[7] ?? 0}`) * 1000))
}
