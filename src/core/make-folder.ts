/**
 * Folders with their parents. Node's own `recursive` tries for ever, at full load, where a parent is there and the folder still
 * "does not exist" when it is to be made: below /proc, with Node 20 to 26.
 */
import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { mkdir, stat } from './disk.ts'

/** Gives the topmost folder that had to be made; undefined when all were there. */
export async function makeFolder(path: string, mode = 0o777): Promise<string | undefined> {
  if ((await kindOf(path)) === 'folder') return undefined
  const missing = [path]
  for (let up = dirname(path); (await kindOf(up)) === null && missing[0] !== up; up = dirname(up)) missing.unshift(up)
  for (const folder of missing)
    await mkdir(folder, { mode }).catch(async (error: unknown) => {
      // Somebody else was faster.
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

/** null: not there, or not to be seen; making it then says why. */
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
