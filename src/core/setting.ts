/** A room's settings: one entry per key, from which flags, variables, the file's schema and the help are made. */
import type { z } from 'zod'

export interface Setting<T = unknown> {
  readonly schema: z.ZodType<T>
  readonly default: T
  /** One sentence, shown by --help and in the documentation. */
  readonly help: string
  /** Commander's notation: `--log-dir <dir>`. Without it the setting has no flag. */
  readonly flag?: string
  /** Another variable besides GPUWARDEN_<KEY>, such as MONITORING_INTERVAL. */
  readonly env?: string
  /** Never shown: `gpuwarden config` prints ******** for it. */
  readonly secret?: true
}

/** Keys are dotted paths into the YAML file: `log.dir`; the variable is GPUWARDEN_LOG_DIR. */
export type Settings = Readonly<Record<string, Setting>>

export type ValuesOf<S extends Settings> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never }

export function setting<T>(
  schema: z.ZodType<T>,
  byDefault: NoInfer<T>,
  help: string,
  more: Pick<Setting, 'flag' | 'env' | 'secret'> = {},
): Setting<T> {
  return { schema, default: byDefault, help, ...more }
}
