import type { Config } from '../agent/config.ts'
import { oneLook } from '../agent/one-look.ts'
import { EXIT } from '../core/failure.ts'
import { createExporter } from '../exporter/exporter.ts'
import { hasMetricSet } from '../sources/vendors.ts'

export async function metrics(config: Config): Promise<number> {
  const { values } = config
  const text = await oneLook(config, ({ state }) =>
    createExporter({ state, sets: values['metrics.sets'], hasSet: hasMetricSet, maxProcesses: values['metrics.max_processes'] }).render(),
  )
  process.stdout.write(text)
  return EXIT.ok
}
