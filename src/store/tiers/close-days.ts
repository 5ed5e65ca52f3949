/** Turns the journal of days that are over into the files of all tiers. Run in a process of its own. */
import { join } from 'node:path'
import { absent, readdir, readFile, rename, stat } from '../../core/disk.ts'
import { Commit } from './commit.ts'
import { headOfLine, lineStart, readLine } from './journal-line.ts'
import { lineBlocks } from './line-blocks.ts'
import { eachRecord, parquetOf, readParquet } from './parquet-file.ts'
import { Rows } from './rows.ts'
import { seriesOf } from './series.ts'
import { FINEST, JOURNAL_FOLDER, parseJournalName, TIERS, tierFile } from './tier-table.ts'

export interface Closing {
  readonly root: string
  /** `2026-11-16`: this day and later ones stay open. */
  readonly before: string
  readonly onDay?: (day: string) => void
}

/** Days of which there is a journal, oldest first. */
export async function openDays(root: string): Promise<readonly string[]> {
  const names = (await readdir(join(root, JOURNAL_FOLDER)).catch(absent)) ?? []
  return [...new Set(names.flatMap((name) => parseJournalName(name)?.day ?? []))].sort()
}

/** Returns what could not be read, by name. */
export async function closeDays({ root, before, onDay }: Closing): Promise<readonly string[]> {
  const faults: string[] = []
  for (const day of await openDays(root)) {
    if (day >= before) break
    onDay?.(day)
    await closeDay(root, day, faults)
  }
  return faults
}

async function closeDay(root: string, day: string, faults: string[]): Promise<void> {
  const folder = join(root, JOURNAL_FOLDER)
  const journals = (await readdir(folder)).filter((name) => parseJournalName(name)?.day === day).sort()
  const before = await sizesOf(folder, journals)
  const devices = new Set<string>()
  const read = async (take: (line: string) => void) => {
    for (const name of journals)
      try {
        for await (const lines of lineBlocks(join(folder, name))) lines.forEach(take)
      } catch (error) {
        faults.push(`${name}: ${(error as Error).message}`)
      }
  }
  await read((line) => {
    const head = headOfLine(line)
    if (head) devices.add(head.device)
  })
  const commit = new Commit(root)
  // One device in memory at a time: its lines are found by how they begin.
  for (const device of devices) {
    const rows = new Rows(FINEST.stepMs, seriesOf(device).all.length)
    const start = lineStart(device)
    await read((line) => {
      if (line.startsWith(start)) readLine(line, (_, at, series, summary) => rows.add(at, series, summary))
    })
    await stageDevice(root, commit, device, rows, faults)
  }
  // A clock that was set back writes to a day that seemed to be over: it is closed at the next look.
  if ((await sizesOf(folder, journals)) === before) await commit.apply(journals.map((name) => join(JOURNAL_FOLDER, name)))
}

async function sizesOf(folder: string, names: readonly string[]): Promise<string> {
  const sizes: number[] = []
  for (const name of names) sizes.push((await stat(join(folder, name))).size)
  return sizes.join()
}

/** Each tier: what its file holds, and what the journal adds. */
async function stageDevice(root: string, commit: Commit, device: string, journal: Rows, faults: string[]): Promise<void> {
  const first = journal.inOrder()[0]
  if (!first) return
  for (const tier of TIERS) {
    const path = tierFile(tier, device, first.at)
    const rows = new Rows(tier.stepMs, seriesOf(device).all.length)
    await addFile(join(root, path), device, rows, faults)
    rows.addAll(journal)
    await commit.stage({ path, bytes: await parquetOf(device, rows) })
  }
}

async function addFile(path: string, device: string, rows: Rows, faults: string[]): Promise<void> {
  const bytes = await readFile(path).catch(absent)
  if (bytes === null) return
  try {
    const all = seriesOf(device).all.map((_, series) => series)
    await readParquet(bytes, device, all, (series, records) => eachRecord(records, (at, summary) => rows.add(at, series, summary)))
  } catch (error) {
    // Somebody may still be able to read it; it is out of our way.
    await rename(path, `${path}.damaged`)
    faults.push(`${path}: ${(error as Error).message}; kept as ${path}.damaged`)
  }
}
