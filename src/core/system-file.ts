/** Files of the system: null when missing or not readable. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** `ENOENT`, `EACCES` …; any other error is a bug and is thrown. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code !== 'string') throw error
  return code
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
