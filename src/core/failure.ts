/** An error that a user can fix: it ends a command with a message and an exit code, not with a stack. */
export class Failure extends Error {
  readonly exitCode: number
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
  /** A check failed: doctor found something missing. */
  checkFailed: 1,
  /** Wrong argument or configuration. */
  usage: 2,
  /** The requested GPUs or recording cannot be read. */
  noSource: 3,
  /** The address is taken or may not be bound. */
  noListen: 4,
  /** A GPU is in this machine, but its driver cannot be used. */
  noDriver: 5,
  internal: 70,
} as const
