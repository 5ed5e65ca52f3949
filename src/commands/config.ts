import type { Config } from '../agent/config.ts'
import { configView } from '../agent/config-view.ts'
import { EXIT } from '../core/failure.ts'

export async function printConfig(config: Config, options: Record<string, unknown>): Promise<number> {
  // Only here and where channels are opened: other commands must not pay for loading them.
  const { checkChannels } = await import('../channels/index.ts')
  checkChannels(config.values)
  const view = configView(config)
  for (const warning of view.warnings) process.stderr.write(`gpuwarden: ${warning}\n`)
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify(view, null, 2)}\n`)
    return EXIT.ok
  }
  process.stdout.write(`# configuration file: ${view.file ?? 'none'}\n`)
  const left = view.settings.map((row) => `${row.key}: ${JSON.stringify(row.value)}`)
  const width = Math.min(60, Math.max(...left.map((text) => text.length)))
  view.settings.forEach((row, index) => {
    process.stdout.write(`${(left[index] ?? '').padEnd(width)}  # ${row.from}\n`)
  })
  return EXIT.ok
}
