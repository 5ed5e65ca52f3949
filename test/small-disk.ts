/** A small disk of our own that can be filled to the last byte, where this system lets us mount one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** null: this system does not let us. */
export function mountSmallDisk(megabytes: number): string | null {
  if (process.getuid?.() !== 0) return null
  const path = mkdtempSync(join(tmpdir(), 'gpuwarden-disk-'))
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path]).status === 0) return path
  rmSync(path, { recursive: true })
  return null
}

export function unmountSmallDisk(path: string): void {
  if (spawnSync('umount', ['-l', path]).status === 0) rmSync(path, { recursive: true })
}

/** Takes all room that is left, to the last byte; deleting the file it returns gives the room back. */
export function fillDisk(path: string): string {
  const file = join(path, 'filler')
  for (let size = 16 * 1024 * 1024; size >= 1; size = Math.floor(size / 4))
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(size), { flag: 'a' })
      } catch {
        // No more of this size.
        break
      }
    }
  return file
}
