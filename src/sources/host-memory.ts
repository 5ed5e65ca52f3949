/** Where the GPU shares the host's memory (GB10, Orin, graphics inside a processor), the kernel's figures are the GPU's. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

export interface HostFigures {
  readonly totalBytes: number
  readonly freeBytes: number
  readonly usedBytes: number
  readonly reservedBytes: null
}

export interface HostMemory {
  read(): HostFigures | null
  close(): void
}

/** Keeps the file open: the kernel rewrites it for every read from offset 0. null: there is no such file. */
export function openHostMemory(root: string): HostMemory | null {
  const path = join(root, 'proc/meminfo')
  if (!existsSync(path)) return null
  const file = openSync(path, 'r')
  const bytes = Buffer.alloc(8192)
  let open = true
  return {
    read: () => (open ? parseMeminfo(bytes.toString('latin1', 0, readSync(file, bytes, 0, bytes.length, 0))) : null),
    close: () => {
      if (open) closeSync(file)
      open = false
    },
  }
}

export function parseMeminfo(text: string): HostFigures | null {
  const totalBytes = kibibytes(text, 'MemTotal:')
  const freeBytes = kibibytes(text, 'MemAvailable:')
  if (totalBytes === null || freeBytes === null || freeBytes > totalBytes) return null
  return { totalBytes, freeBytes, usedBytes: totalBytes - freeBytes, reservedBytes: null }
}

function kibibytes(text: string, key: string): number | null {
  const at = text.indexOf(key)
  if (at === -1 || (at > 0 && text[at - 1] !== '\n')) return null
  const value = Number.parseInt(text.slice(at + key.length, at + key.length + 24), 10)
  return Number.isSafeInteger(value) && value >= 0 ? value * 1024 : null
}
