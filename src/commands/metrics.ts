/** `gpuwarden metrics`: one scrape to standard output. */
import type { Config } from '../config.ts'
import { createExporter } from '../exporter/exporter.ts'
import { EXIT } from '../failure.ts'
import { oneLook } from '../one-look.ts'

export async function metrics(config: Config): Promise<number> {
  const { values } = config
  const text = await oneLook(config, ({ state }) =>
    createExporter({ state, sets: values['metrics.sets'], maxProcesses: values['metrics.max_processes'] }).render(),
  )
  process.stdout.write(text)
  return EXIT.ok
}
