/** What people call a run: its name, with the beginning of its id where another one that still runs has the same name. */
import { BoundedMap } from './bounded-map.ts'
import type { Run } from './model.ts'

const MOST_RUNS = 512
const ID_LENGTH = 8

interface Entry {
  readonly name: string
  readonly isRunning: boolean
}

export class RunNames {
  readonly #runs = new BoundedMap<string, Entry>(MOST_RUNS, { isRenewed: true })

  note({ id, name, endedAt }: Run): void {
    this.#runs.set(id, { name, isRunning: endedAt === null })
  }

  /** The id itself where no name is known. */
  of(id: string): string {
    const name = this.#runs.get(id)?.name ?? id
    if (name === id) return id
    for (const [other, entry] of this.#runs) if (entry.isRunning && entry.name === name && other !== id) return nameWithId(name, id)
    return name
  }

  saved(): unknown {
    return this.#runs.saved()
  }

  load(entries: unknown): void {
    this.#runs.load(entries)
  }
}

/** `llama-1b [5f3a9c0d]` */
export function nameWithId(name: string, id: string): string {
  return `${name} [${id.slice(0, ID_LENGTH)}]`
}
