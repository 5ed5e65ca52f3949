/** Where a file goes that cannot be read in full: somebody may want to look at it. */
import { linkSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const KEPT = 5

/** Gives the copy's name. The file keeps its place until it is written anew: a kill in between loses nothing. Only the latest are kept. */
export function setAside(dir: string, file: string, now: number): string {
  const name = `alerts-${now}.corrupt`
  try {
    linkSync(join(dir, file), join(dir, name))
  } catch {
    // A folder, or a file system without links.
    renameSync(join(dir, file), join(dir, name))
  }
  const old = readdirSync(dir)
    .filter((found) => /^alerts-\d+\.corrupt$/.test(found))
    .sort()
  for (const found of old.slice(0, -KEPT)) rmSync(join(dir, found), { force: true, recursive: true })
  return name
}
