/** Deletes records that are too old or too many, with the care of the logs: counted from the newest record, and one file a minute. */
import { join } from 'node:path'
import { absent, readdir, rm, stat } from '../../core/disk.ts'
import type { Log } from '../../core/kinds.ts'
import { type DeletionClock, DeletionGuard } from '../deletion-guard.ts'
import { boundsOfPeriod, DAY_MS, FINEST, FOLDER, JOURNAL_FOLDER, parseJournalName, TIERS } from './tier-table.ts'

export interface RetentionRules extends DeletionClock {
  readonly logDir: string
  readonly log: Log
  /** Of the tier of 10 seconds, and of the others; 0: for ever. */
  readonly keepFinestDays: number
  readonly keepDays: number
  /** Of all together; 0: no limit. */
  readonly keepBytes: number
}

export interface TierFile {
  /** Relative to the folder of the history. */
  readonly path: string
  readonly tier: string
  readonly from: number
  readonly end: number
  readonly bytes: number
}

const ENDING = /\.parquet(?:\.damaged)?$/

export class TierRetention {
  readonly #rules: RetentionRules
  readonly #guard: DeletionGuard
  #startedWith: number | null | undefined
  #due: TierFile[] = []

  constructor(rules: RetentionRules) {
    this.#rules = rules
    this.#guard = new DeletionGuard(rules)
  }

  /** Lists the folder anew, unless files from the last look still have to go. Deletes one at most; true: another one is due. */
  async sweep(): Promise<boolean> {
    const { logDir, log, now } = this.#rules
    const root = join(logDir, FOLDER)
    if (this.#due.length === 0) {
      const files = await listTierFiles(root)
      const newest = newestIn(files)
      if (this.#startedWith === undefined) this.#startedWith = newest
      if (newest !== null) this.#due = [...tooMuch(files, Math.min(newest, now()), this.#rules)]
    }
    if (!this.#guard.isTimeTrusted(() => this.#startedWith ?? null)) this.#due = []
    const [file] = this.#due
    if (!file || this.#guard.waitMs() > 0) return this.#due.length > 0
    await rm(join(root, file.path), { force: true })
    this.#due.shift()
    this.#guard.deleted()
    log.info(
      { file: file.path, bytes: file.bytes },
      'a file of the history was deleted: it is older, or all are larger, than the settings allow',
    )
    return this.#due.length > 0
  }
}

/** Those that have to go, first the one to go first. The newest of each tier always stays. */
export function tooMuch(
  files: readonly TierFile[],
  newest: number,
  { keepFinestDays, keepDays, keepBytes }: Pick<RetentionRules, 'keepFinestDays' | 'keepDays' | 'keepBytes'>,
): readonly TierFile[] {
  const lastOf = new Map<string, number>()
  for (const { tier, end } of files) lastOf.set(tier, Math.max(end, lastOf.get(tier) ?? end))
  const closed = files.filter(({ tier, end }) => end < (lastOf.get(tier) ?? 0)).sort((a, b) => a.end - b.end)
  const daysOf = (tier: string) => (tier === FINEST.name || tier === JOURNAL_FOLDER ? keepFinestDays : keepDays)
  const old = closed.filter(({ tier, end }) => daysOf(tier) > 0 && newest - end > daysOf(tier) * DAY_MS)
  const going = new Set(old)
  let total = files.reduce((sum, file) => sum + (going.has(file) ? 0 : file.bytes), 0)
  // The coarse tiers are small, and what is left of the far past: they go last.
  for (const file of [...closed.filter(isOfOneDay), ...closed.filter((one) => !isOfOneDay(one))]) {
    if (keepBytes === 0 || total <= keepBytes) break
    if (going.has(file)) continue
    going.add(file)
    total -= file.bytes
  }
  return [...going]
}

export async function listTierFiles(root: string): Promise<readonly TierFile[]> {
  const found: TierFile[] = []
  const add = async (tier: string, path: string, bounds: { readonly from: number; readonly end: number } | null) => {
    const stats = bounds && (await stat(join(root, path)).catch(absent))
    if (bounds && stats?.isFile()) found.push({ path, tier, from: bounds.from, end: bounds.end, bytes: stats.size })
  }
  for (const { name: tier } of TIERS)
    for (const device of (await readdir(join(root, tier)).catch(absent)) ?? [])
      for (const name of (await readdir(join(root, tier, device)).catch(absent)) ?? [])
        if (ENDING.test(name)) await add(tier, join(tier, device, name), boundsOfPeriod(name.replace(ENDING, '')))
  for (const name of (await readdir(join(root, JOURNAL_FOLDER)).catch(absent)) ?? [])
    await add(JOURNAL_FOLDER, join(JOURNAL_FOLDER, name), parseJournalName(name))
  return found
}

function isOfOneDay({ from, end }: TierFile): boolean {
  return end - from <= DAY_MS
}

/** The moment up to which there are records. */
function newestIn(files: readonly TierFile[]): number | null {
  // A month is not over when its file is written.
  const exact = files.filter(isOfOneDay)
  return exact.length === 0 ? null : Math.max(...exact.map(({ end }) => end))
}
