/** Files of the system: null when missing or not readable. */
import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'

/** `ENOENT`, `EACCES` …; any other error is a bug and is thrown. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code !== 'string') throw error
  return code
}

export class NotAFile extends Error {}

/** Throws when something else is at the path: a pipe or a device would be waited for, for ever. */
export function refuseOtherThanFile(path: string, found: Stats | undefined = statSync(path, { throwIfNoEntry: false })): void {
  if (found === undefined || found.isFile()) return
  const kind = found.isFIFO() ? 'a pipe' : found.isSocket() ? 'a socket' : found.isDirectory() ? 'a folder' : 'a device'
  throw new NotAFile(`${path} is ${kind}, not a file: remove it, or choose another place`)
}

/** Of a file that only gpuwarden writes. */
export function readOwnFile(path: string): string {
  refuseOtherThanFile(path)
  return readFileSync(path, 'utf8')
}

export function tryReadText(path: string): string | null {
  return orNull(() => readFileSync(path, 'utf8'))
}

export function tryReadBytes(path: string): Buffer | null {
  return orNull(() => readFileSync(path))
}

export function tryReadLink(path: string): string | null {
  return orNull(() => readlinkSync(path))
}

export function tryList(path: string): string[] | null {
  return orNull(() => readdirSync(path))
}

function orNull<T>(call: () => T): T | null {
  try {
    return call()
  } catch (error) {
    errorCode(error)
    return null
  }
}
