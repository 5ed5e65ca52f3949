/** The processes that the compute driver lists, with the memory each holds on a card. Readable for everyone. */
import { join } from 'node:path'
import type { Reading } from '../../core/model.ts'
import { tryList } from '../../core/system-file.ts'
import { Attribute } from '../drm/attribute.ts'
import type { ComputeProcesses } from '../drm/driver.ts'
import { parseInteger } from '../drm/parse.ts'

const MAX_PIDS = 4096

interface HeldFile {
  readonly file: Attribute
  bytes: Reading
}

export class KfdProcesses implements ComputeProcesses {
  readonly #folder: string
  /** By PID, then by kfd's GPU number. */
  #files = new Map<number, Map<string, HeldFile>>()

  constructor(root: string) {
    this.#folder = join(root, 'sys/class/kfd/kfd/proc')
  }

  list(): number[] {
    const pids = (tryList(this.#folder) ?? []).map(Number).filter((pid) => Number.isInteger(pid) && pid > 0)
    const before = this.#files
    this.#files = new Map(pids.slice(0, MAX_PIDS).map((pid) => [pid, before.get(pid) ?? new Map<string, HeldFile>()]))
    for (const [pid, files] of before) if (!this.#files.has(pid)) closeAll(files)
    return [...this.#files.keys()]
  }

  /** Bytes by PID on the card with these numbers. Every process has a file for every card: one that holds nothing is asked only when `all`. */
  read(ids: readonly string[], nowMs: number, all: boolean): Map<number, Reading> {
    const held = new Map<number, Reading>()
    for (const [pid, files] of this.#files)
      for (const id of ids) {
        const known = files.get(id)
        if (known?.bytes === 0 && !all) continue
        const one = known ?? { file: new Attribute(join(this.#folder, String(pid), `vram_${id}`)), bytes: 0 }
        files.set(id, one)
        one.bytes = readHeld(one.file, nowMs)
        if (one.bytes === 0) continue
        const before = held.get(pid)
        held.set(pid, one.bytes === null || before === null ? null : (before ?? 0) + one.bytes)
      }
    return held
  }

  close(): void {
    for (const files of this.#files.values()) closeAll(files)
    this.#files.clear()
  }
}

/** A file that is gone belonged to a process that is gone. */
function readHeld(file: Attribute, nowMs: number): Reading {
  const text = file.readText(nowMs)
  if (text !== null) return parseInteger(text)
  return file.code === 'ENOENT' || file.code === 'ENODEV' ? 0 : null
}

function closeAll(files: ReadonlyMap<string, HeldFile>): void {
  for (const { file } of files.values()) file.close()
}
