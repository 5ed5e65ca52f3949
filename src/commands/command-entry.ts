/** A command: what its help says, and what runs it. */
import type { Config, ConfigKey } from '../agent/config.ts'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Which settings are flags of this command. */
  readonly settings: readonly ConfigKey[]
  /** Where this command does otherwise than the setting's default says: what its help shows. */
  readonly defaults?: Readonly<Partial<Record<ConfigKey, string>>>
  readonly options: readonly { readonly flag: string; readonly help: string }[]
  /** Positional ones in commander's notation: `<path>`, `[action]`, `[what...]`. */
  readonly arguments?: readonly { readonly notation: string; readonly help: string }[]
  readonly examples: readonly string[]
  /** `args`: the positional arguments that were given, in their order. */
  run(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number>
}
