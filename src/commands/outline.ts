/** The command line as data, for what is made of it: the program itself, its completion in shells, its man page. */
import { type ConfigKey, SETTINGS } from '../agent/config.ts'
import type { Setting } from '../core/setting.ts'
import type { CommandEntry, Completion } from './command-entry.ts'

export interface OutlinedFlag {
  /** Commander's notation: `--log-dir <dir>`. */
  readonly notation: string
  /** `--log-dir`. */
  readonly long: string
  readonly takesValue: boolean
  readonly help: string
  readonly values: Completion | null
  /** null: an option of this command alone. */
  readonly key: ConfigKey | null
}

export function flagsOf(entry: CommandEntry): OutlinedFlag[] {
  const settings = entry.settings.flatMap((key) => {
    const setting: Setting = SETTINGS[key]
    if (setting.flag === undefined) return []
    const help = `${setting.help} (default: ${entry.defaults?.[key] ?? describe(setting.default)})`
    return [flag(setting.flag, help, wordsOf(setting.schema), key)]
  })
  const options = entry.options.map(({ flag: notation, help, values }) => flag(notation, help, values ?? null, null))
  return [...settings, flag('--config <file>', 'YAML configuration file', null, null), ...options]
}

function flag(notation: string, help: string, values: Completion | null, key: ConfigKey | null): OutlinedFlag {
  const [long = ''] = notation.split(/[ ,]/).filter((word) => word.startsWith('--'))
  const place = /[<[](\w+)/.exec(notation)?.[1]
  const ofDisk = place === 'file' || place === 'dir' ? place : null
  return { notation, long, takesValue: place !== undefined, help, values: values ?? ofDisk, key }
}

function wordsOf(schema: unknown): readonly string[] | null {
  const options = (schema as { options?: unknown }).options
  return Array.isArray(options) && options.every((one) => typeof one === 'string') ? options : null
}

function describe(value: unknown): string {
  return value === null ? 'none' : Array.isArray(value) ? value.join(',') || 'none' : String(value)
}
