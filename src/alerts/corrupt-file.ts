/** Where a file goes that cannot be read in full: somebody may want to look at it. */
import { join } from 'node:path'
import { link, readdir, rename, rm } from '../core/disk.ts'
import type { Log } from '../core/kinds.ts'

const KEPT = 5

export interface Damage {
  readonly reason: string
  /** What could be read, and what was added since. */
  readonly kept: ReadonlyMap<string, unknown>
  readonly now: () => number
  readonly log: Log
}

/** Returns the copy's name. The file stays until it is rewritten, so a kill in between loses nothing. Only the latest copies are kept. */
export async function setAside(dir: string, file: string, { reason, kept, now, log }: Damage): Promise<string> {
  const name = `alerts-${now()}.corrupt`
  // A folder, or a file system without links.
  await link(join(dir, file), join(dir, name)).catch(() => rename(join(dir, file), join(dir, name)))
  const found = await readdir(dir)
  const old = found.filter((one) => /^alerts-\d+\.corrupt$/.test(one)).sort()
  for (const one of old.slice(0, -KEPT)) await rm(join(dir, one), { force: true, recursive: true })
  log.error(
    { file: join(dir, name), kept: kept.size },
    `the alert journal is damaged: ${reason}; it was set aside as ${name}, and ${kept.size} entries were kept`,
  )
  return name
}
