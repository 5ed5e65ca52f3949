/** A moment as people write it on the command line. */
import { EXIT, Failure } from '../core/failure.ts'
import { parseClock } from '../core/recording/csv.ts'
import { parseTimestamp } from '../core/recording/recording.ts'

/** `flag` and `command` are for the message. */
export function readTime(flag: string, text: string, command: string): number {
  const at = parseClock(text) ?? parseTimestamp(text) ?? (text.trim() === '' ? null : parseTimestamp(Number(text)))
  if (at !== null) return at
  throw new Failure(`${flag}: expected a time such as 2026-11-15T06:34:10Z or seconds since 1970; got "${text}"`, {
    exitCode: EXIT.usage,
    hint: `"gpuwarden ${command} --help" shows examples.`,
  })
}
