/** What is done in a process of its own: finish what was interrupted, take in logs, close days. */
import { join } from 'node:path'
import { closeDays } from './close-days.ts'
import { recover } from './commit.ts'
import { type ImportProgress, importLogs } from './import-logs.ts'
import { FOLDER } from './tier-table.ts'

export interface UpkeepOrder {
  readonly logDir: string
  /** `2026-11-16`: this day and later ones stay open. */
  readonly before: string
}

export type UpkeepNews =
  | ({ readonly type: 'import' } & ImportProgress)
  | { readonly type: 'day'; readonly day: string }
  | { readonly type: 'done'; readonly faults: readonly string[] }
  | { readonly type: 'failed'; readonly reason: string }

export async function keepUp({ logDir, before }: UpkeepOrder, say: (news: UpkeepNews) => void): Promise<void> {
  const root = join(logDir, FOLDER)
  const faults: string[] = []
  const close = async (day: string) => {
    const earlier = day < before ? day : before
    faults.push(...(await closeDays({ root, before: earlier, onDay: (one) => say({ type: 'day', day: one }) })))
  }
  try {
    await recover(root)
    faults.push(...(await importLogs({ logDir, onProgress: (progress) => say({ type: 'import', ...progress }), onLogDone: close })))
    await close(before)
    say({ type: 'done', faults })
  } catch (error) {
    say({ type: 'failed', reason: (error as Error).message })
  }
}
