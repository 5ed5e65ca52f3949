/** What the folder of the history says of itself: since when records are kept, and which logs were taken in. */
import { join } from 'node:path'
import { absent, readFile } from '../../core/disk.ts'

export const STATE_FILE = 'state.json'

export interface TierState {
  readonly version: 1
  /** Epoch ms of the first sample that became a record as it was taken: logs are taken in up to then. */
  readonly startedAt: number
  /** Logs that were taken in, without `.gz`; null: all that there were. */
  readonly imported: readonly string[] | null
}

export function newState(startedAt: number): TierState {
  return { version: 1, startedAt, imported: [] }
}

/** null: there is none, or it cannot be understood. */
export async function readState(root: string): Promise<TierState | null> {
  const text = await readFile(join(root, STATE_FILE), 'utf8').catch(absent)
  try {
    const value = JSON.parse(text ?? '') as TierState
    const isList = Array.isArray(value.imported) && value.imported.every((name) => typeof name === 'string')
    return value.version === 1 && Number.isFinite(value.startedAt) && (isList || value.imported === null) ? value : null
  } catch {
    return null
  }
}
