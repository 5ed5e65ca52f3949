/** Creates folders with their parents. Node's `recursive` loops forever at full load below /proc (Node 20 to 26). */
import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { mkdir, stat } from './disk.ts'

/** Returns the topmost created folder; undefined: all existed. */
export async function makeFolder(path: string, mode = 0o777): Promise<string | undefined> {
  if ((await kindOf(path)) === 'folder') return undefined
  const missing = [path]
  for (let up = dirname(path); (await kindOf(up)) === null && missing[0] !== up; up = dirname(up)) missing.unshift(up)
  for (const folder of missing)
    await mkdir(folder, { mode }).catch(async (error: unknown) => {
      // Another process was faster.
      if ((await kindOf(folder)) !== 'folder') throw error
    })
  return missing[0]
}

export function makeFolderSync(path: string, mode = 0o777): string | undefined {
  if (kindOfSync(path) === 'folder') return undefined
  const missing = [path]
  for (let up = dirname(path); kindOfSync(up) === null && missing[0] !== up; up = dirname(up)) missing.unshift(up)
  for (const folder of missing)
    try {
      mkdirSync(folder, { mode })
    } catch (error) {
      if (kindOfSync(folder) !== 'folder') throw error
    }
  return missing[0]
}

type Kind = 'folder' | 'other' | null

/** null: missing or not visible; mkdir then says why. */
async function kindOf(path: string): Promise<Kind> {
  return stat(path).then(kind, () => null)
}

function kindOfSync(path: string): Kind {
  try {
    return kind(statSync(path))
  } catch {
    return null
  }
}

function kind(entry: Stats): Kind {
  return entry.isDirectory() ? 'folder' : 'other'
}
