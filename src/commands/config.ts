/** `gpuwarden config`: what is in force, and why. */
import { maskSecrets } from '../channels/settings.ts'
import { type Config, describeOrigin, KEYS, SETTINGS, variableOf } from '../config.ts'
import { EXIT } from '../failure.ts'
import type { Setting } from '../setting.ts'

const MASK = '********'

export async function printConfig(config: Config, options: Record<string, unknown>): Promise<number> {
  // Only here and where channels are opened: other commands must not pay for loading them.
  const { checkChannels } = await import('../channels/index.ts')
  checkChannels(config.values)
  const rows = KEYS.map((key) => {
    const setting: Setting = SETTINGS[key]
    const value: unknown = config.values[key]
    return {
      key,
      value: setting.secret ? masked(value) : value,
      from: describeOrigin(config.origins[key]),
      variable: variableOf(key),
      help: setting.help,
    }
  })
  for (const warning of config.warnings) process.stderr.write(`gpuwarden: ${warning}\n`)
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ file: config.file, settings: rows }, null, 2)}\n`)
    return EXIT.ok
  }
  process.stdout.write(`# configuration file: ${config.file ?? 'none'}\n`)
  const left = rows.map((row) => `${row.key}: ${JSON.stringify(row.value)}`)
  const width = Math.min(60, Math.max(...left.map((text) => text.length)))
  rows.forEach((row, index) => {
    process.stdout.write(`${(left[index] ?? '').padEnd(width)}  # ${row.from}\n`)
  })
  return EXIT.ok
}

/** Of what is made of parts only the secret ones are hidden. */
function masked(value: unknown): unknown {
  if (value === null || value === '') return value
  return typeof value === 'object' ? maskSecrets(value) : MASK
}
