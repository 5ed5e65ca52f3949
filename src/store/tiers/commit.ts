/** Changes several files as one: what is to be done is written down first, and done again after a crash. */
import { dirname, isAbsolute, join } from 'node:path'
import { absent, open, readdir, readFile, rename, rm, stat, writeFile } from '../../core/disk.ts'
import { makeFolder } from '../../core/make-folder.ts'

const NOTE = 'commit.json'
const PART = '.part'

export interface Change {
  readonly path: string
  readonly bytes: Buffer | string
}

interface Note {
  readonly renames: readonly string[]
  readonly removes: readonly string[]
}

/** New contents of a set of files, and files that these replace. Paths are relative to the folder. */
export class Commit {
  readonly #root: string
  readonly #paths: string[] = []

  constructor(root: string) {
    this.#root = root
  }

  /** Written beside the file; in its place only with `apply`. */
  async stage({ path, bytes }: Change): Promise<void> {
    const part = join(this.#root, path + PART)
    await makeFolder(dirname(part), 0o750)
    await writeFile(part, bytes, { mode: 0o640, flush: true })
    this.#paths.push(path)
  }

  /** From the moment the note is in its place, all of it happens, whatever is killed. */
  async apply(removes: readonly string[]): Promise<void> {
    const note: Note = { renames: this.#paths, removes }
    await writeFile(join(this.#root, NOTE + PART), JSON.stringify(note), { mode: 0o640, flush: true })
    await rename(join(this.#root, NOTE + PART), join(this.#root, NOTE))
    await syncFolder(this.#root)
    await carryOut(this.#root, note)
  }
}

/** Finishes what was interrupted, and clears away what was only begun. */
export async function recover(root: string): Promise<void> {
  const text = await readFile(join(root, NOTE), 'utf8').catch(absent)
  if (text !== null) await carryOut(root, parseNote(text))
  await removeParts(root)
}

async function carryOut(root: string, { renames, removes }: Note): Promise<void> {
  const folders = new Set<string>()
  for (const path of renames) {
    // Missing: it was renamed before the crash.
    await rename(join(root, path + PART), join(root, path)).catch(absent)
    folders.add(dirname(join(root, path)))
  }
  for (const folder of folders) await syncFolder(folder)
  for (const path of removes) await rm(join(root, path), { force: true })
  await rm(join(root, NOTE), { force: true })
}

function parseNote(text: string): Note {
  const nothing: Note = { renames: [], removes: [] }
  try {
    const note = JSON.parse(text) as Note
    return [...note.renames, ...note.removes].every(isInside) ? note : nothing
  } catch {
    return nothing
  }
}

function isInside(path: unknown): boolean {
  return typeof path === 'string' && !isAbsolute(path) && !path.split('/').includes('..')
}

async function removeParts(folder: string): Promise<void> {
  for (const name of (await readdir(folder).catch(absent)) ?? []) {
    const path = join(folder, name)
    if (name.endsWith(PART)) await rm(path, { force: true })
    else if ((await stat(path).catch(absent))?.isDirectory()) await removeParts(path)
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } catch (error) {
    // Some file systems cannot sync a folder.
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EBADF'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await handle.close()
  }
}
