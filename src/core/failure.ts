/** A fault that a person can do something about: it ends a command with a sentence and an exit code, not with a stack. */
export class Failure extends Error {
  readonly exitCode: number
  /** What to do about it. */
  readonly hint: string | null

  constructor(
    message: string,
    { exitCode = EXIT.internal, hint = null, cause }: { exitCode?: number; hint?: string | null; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.exitCode = exitCode
    this.hint = hint
  }
}

/** Documented in docs/cli.md. */
export const EXIT = {
  ok: 0,
  /** A check said no: doctor found something missing. */
  checkFailed: 1,
  /** Wrong argument or configuration. */
  usage: 2,
  /** The GPUs or the recording that were asked for cannot be read. */
  noSource: 3,
  /** The address is taken or may not be bound. */
  noListen: 4,
  internal: 70,
} as const
