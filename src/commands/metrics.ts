import type { Config } from '../agent/config.ts'
import { exitOf, oneLook } from '../agent/one-look.ts'
import { createExporter } from '../exporter/exporter.ts'
import { METRIC_NAMING } from '../sources/vendors.ts'

export async function metrics(config: Config): Promise<number> {
  const { values } = config
  const { text, code } = await oneLook(config, ({ state }) => ({
    text: createExporter({
      state,
      sets: values['metrics.sets'],
      naming: METRIC_NAMING,
      maxProcesses: values['metrics.max_processes'],
    }).render(),
    code: exitOf(state.gpus(), state.health()),
  }))
  process.stdout.write(text)
  return code
}
