/** A command: what its help says, and what runs it. */
import type { Config, ConfigKey } from '../agent/config.ts'

export const SOURCE_FLAGS = [
  'source',
  'devices',
  'demo.gpus',
  'demo.scenario',
  'demo.seed',
  'replay.speed',
  'deadline',
  'wake',
] as const satisfies readonly ConfigKey[]
/** To reach an agent that runs. */
export const TOKEN_FLAGS = ['server.token', 'server.token_file'] as const satisfies readonly ConfigKey[]
export const ONE_GPU = { flag: '--gpu <index>', help: 'only this GPU', values: 'gpu' } as const
export const JSON_OPTION = { flag: '--json', help: 'as JSON' }

/** What people want to do, in the order of the help. */
export const GROUPS = {
  look: 'Look at GPUs and training:',
  train: 'Run and understand a training:',
  memory: 'Hunt memory:',
  alert: 'Be notified:',
  operate: 'Set up and operate:',
} as const

/** What a shell offers: these words, or what a running agent or the disk knows. */
export type Completion = readonly string[] | 'gpu' | 'run' | 'channel' | 'file' | 'dir'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly group: keyof typeof GROUPS
  /** Which settings are flags of this command. */
  readonly settings: readonly ConfigKey[]
  /** Where this command does otherwise than the setting's default says: what its help shows. */
  readonly defaults?: Readonly<Partial<Record<ConfigKey, string>>>
  readonly options: readonly { readonly flag: string; readonly help: string; readonly values?: Completion }[]
  /** Positional ones in commander's notation: `<path>`, `[action]`, `[what...]`. */
  readonly arguments?: readonly { readonly notation: string; readonly help: string; readonly values?: Completion }[]
  readonly examples: readonly string[]
  /** `args`: the positional arguments that were given, in their order. */
  run(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number>
}
