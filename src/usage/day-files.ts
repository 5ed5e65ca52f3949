/** The ledger on disk: a file of lines per day (UTC), compressed when the day is over. */
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { absent, open, readdir, readFile, rename, rm, stat, writeFile } from '../core/disk.ts'
import { DAY_MS, decodeRow, encodeRow, keyText, SUM_NAMES, type UsageRow } from './row.ts'

const NAME = /^(\d{4}-\d\d-\d\d)\.ndjson(\.gz)?$/
const LARGEST_BYTES = 256 * 1024 ** 2
const compress = promisify(gzip)
const expand = promisify(gunzip)

export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/** Rows of one day: of the same stretch the newest state counts, and a file that was copied or written twice adds nothing. */
export class DayRows {
  readonly #rows = new Map<string, UsageRow>()

  add(row: UsageRow): void {
    const key = `${row.hour}\n${row.part}\n${keyText(row)}`
    const known = this.#rows.get(key)
    if (!known) this.#rows.set(key, row)
    else for (const name of SUM_NAMES) known[name] = Math.max(known[name], row[name])
  }

  addLines(text: string): void {
    for (const line of text.split('\n')) {
      const row = line === '' ? null : decodeRow(line)
      if (row) this.add(row)
    }
  }

  values(): IterableIterator<UsageRow> {
    return this.#rows.values()
  }
}

export interface DayFile {
  readonly name: string
  readonly day: string
  readonly isCompressed: boolean
}

/** Oldest first. */
export async function listDays(dir: string): Promise<DayFile[]> {
  const names = (await readdir(dir).catch(absent)) ?? []
  const files = names.flatMap((name) => {
    const [, day, packed] = NAME.exec(name) ?? []
    return day === undefined ? [] : [{ name, day, isCompressed: packed !== undefined }]
  })
  return files.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Adds the rows of a day's files. Throws when one cannot be read at all. */
export async function readDay(dir: string, files: readonly DayFile[], into: DayRows): Promise<void> {
  for (const { name, isCompressed } of files) {
    const bytes = await readFile(join(dir, name)).catch(absent)
    if (bytes !== null) into.addLines((isCompressed ? await expand(bytes, { maxOutputLength: LARGEST_BYTES }) : bytes).toString())
  }
}

/** Safe from a power cut when it resolves. A line that a full disk cut off stays alone on its line. */
export async function appendRows(dir: string, rows: readonly UsageRow[]): Promise<void> {
  for (const [day, own] of byDay(rows)) {
    const file = await open(join(dir, `${day}.ndjson`), 'a', 0o640)
    try {
      const { size } = await file.stat()
      await file.writeFile(`${size > 0 ? '\n' : ''}${own.map(encodeRow).join('\n')}\n`)
      await file.datasync()
    } finally {
      await file.close()
    }
  }
}

function byDay(rows: readonly UsageRow[]): Map<string, UsageRow[]> {
  const days = new Map<string, UsageRow[]>()
  for (const row of rows) {
    const day = dayOf(row.hour)
    const own = days.get(day) ?? []
    own.push(row)
    days.set(day, own)
  }
  return days
}

/** Compresses days that are over, each state of a row once. A kill in between leaves both files, which say the same. */
export async function compressDays(dir: string, now: number): Promise<void> {
  const files = await listDays(dir)
  for (const plain of files) {
    if (plain.isCompressed || plain.day >= dayOf(now - DAY_MS)) continue
    const rows = new DayRows()
    await readDay(
      dir,
      files.filter(({ day }) => day === plain.day),
      rows,
    )
    const packed = join(dir, `${plain.day}.ndjson.gz`)
    const bytes = await compress(`${[...rows.values()].map(encodeRow).join('\n')}\n`)
    await writeFile(`${packed}.tmp`, bytes, { mode: 0o640, flush: true })
    await rename(`${packed}.tmp`, packed)
    await rm(join(dir, plain.name), { force: true })
  }
}

export interface Retention {
  readonly keepDays: number
  readonly keepBytes: number
}

/** Deletes the oldest days; 0: no limit. Ages count from the newest day, so that a clock that is wrong deletes nothing. */
export async function sweepDays(dir: string, { keepDays, keepBytes }: Retention): Promise<void> {
  const files = await listDays(dir)
  const newest = Date.parse(files.at(-1)?.day ?? '')
  const sizes = new Map<string, number>()
  for (const { name } of files) sizes.set(name, (await stat(join(dir, name)).catch(absent))?.size ?? 0)
  let total = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  for (const { name, day } of files) {
    const isOld = keepDays > 0 && newest - Date.parse(day) >= keepDays * DAY_MS
    const isTooMuch = keepBytes > 0 && total > keepBytes && Date.parse(day) < newest
    if (!isOld && !isTooMuch) continue
    await rm(join(dir, name), { force: true })
    total -= sizes.get(name) ?? 0
  }
}
