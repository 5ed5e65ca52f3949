/** Reads the records of a device from the files of the history, and from the journal what no file holds yet. */
import { join } from 'node:path'
import { absent, open, readdir } from '../../core/disk.ts'
import type { Summary } from '../minute-ring.ts'
import { headOfLine, lineStart, readLine } from './journal-line.ts'
import { lineBlocks } from './line-blocks.ts'
import { eachRecord, readParquet } from './parquet-file.ts'
import { boundsOfPeriod, deviceOfFolder, folderOfDevice, JOURNAL_FOLDER, parseJournalName, TIERS, type Tier } from './tier-table.ts'

export interface Period {
  readonly path: string
  readonly from: number
  readonly end: number
}

/** The summary is valid during the call only. */
export type TakeRecord = (at: number, series: number, summary: Summary) => void

export interface ReadRange {
  readonly device: string
  readonly series: readonly number[]
  /** Records that begin from `from` up to, not including, `end`. */
  readonly from: number
  readonly end: number
}

const ENDING = '.parquet'
const LARGEST_FILE_BYTES = 64 * 1024 * 1024

export class TierReader {
  readonly #root: string
  readonly #onDamage: (path: string, error: Error) => void
  #buffer = Buffer.alloc(0)

  /** A damaged file is named, and the others are read. */
  constructor(root: string, onDamage: (path: string, error: Error) => void) {
    this.#root = root
    this.#onDamage = onDamage
  }

  /** In order of time. */
  async periods(tier: Tier, device: string): Promise<readonly Period[]> {
    const folder = join(this.#root, tier.name, folderOfDevice(device))
    const found: Period[] = []
    for (const name of await names(folder)) {
      const bounds = name.endsWith(ENDING) ? boundsOfPeriod(name.slice(0, -ENDING.length)) : null
      if (bounds) found.push({ path: join(folder, name), ...bounds })
    }
    return found.sort((a, b) => a.from - b.from)
  }

  async journals(): Promise<readonly Period[]> {
    const folder = join(this.#root, JOURNAL_FOLDER)
    const found: Period[] = []
    for (const name of await names(folder)) {
      const own = parseJournalName(name)
      if (own) found.push({ path: join(folder, name), from: own.from, end: own.end })
    }
    return found.sort((a, b) => a.from - b.from)
  }

  /** All that have records. */
  async devices(): Promise<readonly string[]> {
    const found = new Set<string>()
    for (const { name } of TIERS) for (const folder of await names(join(this.#root, name))) found.add(deviceOfFolder(folder))
    const last = (await this.journals()).at(-1)
    if (last) await this.#readLines(last.path, (line) => found.add(headOfLine(line)?.device ?? ''))
    found.delete('')
    return [...found]
  }

  async read(tier: Tier, range: ReadRange, take: TakeRecord): Promise<void> {
    for (const period of await this.periods(tier, range.device)) {
      if (period.end <= range.from || period.from >= range.end) continue
      await this.#readPeriod(period, range, take)
    }
  }

  async readJournal(journals: readonly Period[], { device, series, from, end }: ReadRange, take: TakeRecord): Promise<void> {
    const start = lineStart(device)
    const wanted = new Set(series)
    for (const journal of journals) {
      if (journal.end <= from || journal.from >= end) continue
      await this.#readLines(journal.path, (line) => {
        if (!line.startsWith(start)) return
        readLine(line, (_, at, one, summary) => {
          if (at >= from && at < end && wanted.has(one)) take(at, one, summary)
        })
      })
    }
  }

  async #readPeriod({ path }: Period, { device, series, from, end }: ReadRange, take: TakeRecord): Promise<void> {
    try {
      const bytes = await this.#bytesOf(path)
      if (bytes === null) return
      await readParquet(bytes, device, series, (one, records) =>
        eachRecord(records, (at, summary) => {
          if (at >= from && at < end) take(at, one, summary)
        }),
      )
    } catch (error) {
      this.#onDamage(path, error as Error)
    }
  }

  /** Into the same memory each time: one caller reads at a time. null: deleted since the folder was listed. */
  async #bytesOf(path: string): Promise<Buffer | null> {
    const file = await open(path, 'r').catch(absent)
    if (file === null) return null
    try {
      const { size } = await file.stat()
      if (size > LARGEST_FILE_BYTES) throw new Error(`${size} bytes are more than a file of the history has`)
      if (this.#buffer.length < size) this.#buffer = Buffer.allocUnsafeSlow(Math.ceil(size * 1.25))
      const bytes = this.#buffer.subarray(0, size)
      const { bytesRead } = await file.read(bytes, 0)
      return bytes.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  }

  async #readLines(path: string, take: (line: string) => void): Promise<void> {
    try {
      for await (const lines of lineBlocks(path)) lines.forEach(take)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#onDamage(path, error as Error)
    }
  }
}

async function names(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(absent)) ?? []
}
