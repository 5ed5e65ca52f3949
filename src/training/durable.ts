/** What makes a write survive a power cut. */
import { dirname, join } from 'node:path'
import { open, readdir, stat } from '../core/disk.ts'
import { makeFolder } from '../core/make-folder.ts'

export async function ensureFolder(path: string): Promise<void> {
  const firstMade = await makeFolder(path, 0o750)
  if (firstMade === undefined) return
  for (let folder = path; folder.length >= firstMade.length; folder = dirname(folder)) await syncFolder(dirname(folder))
}

/** The names in a folder: only this makes a new or renamed file durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } catch (error) {
    // Some network file systems have no such call for a folder; they keep names themselves.
    if (!['EINVAL', 'ENOTSUP', 'EISDIR', 'EBADF'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await folder.close()
  }
}

/** Makes the step log durable, as far as it was written since `since`, whoever wrote it. */
export async function syncStepLog(dir: string, since: number): Promise<void> {
  const names = (await readdir(dir)).filter((name) => name.startsWith('training_metrics_'))
  for (const name of names) {
    const path = join(dir, name)
    const found = await stat(path).catch(ignoreGone)
    if (!found || found.mtimeMs < since) continue
    const file = await open(path, 'r').catch(ignoreGone)
    await file?.datasync().finally(() => file.close())
  }
  await syncFolder(dir)
}

/** Compressed or rotated away in the meantime; the store syncs what it makes of it. */
function ignoreGone(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
