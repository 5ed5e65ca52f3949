/** `gpuwarden status`: one look at memory and use. */
import type { Config } from '../agent/config.ts'
import { oneLook } from '../agent/one-look.ts'
import { EXIT } from '../core/failure.ts'
import { formatBytes, formatPercent, formatWhole, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { GpuView } from '../core/kinds.ts'
import type { ProcessView } from '../core/model.ts'
import { MemoryStatistics, memoryStatusReport } from '../report/memory-status.ts'
import { alignColumns } from './table.ts'

export async function status(config: Config, options: Record<string, unknown>): Promise<number> {
  const statistics = new MemoryStatistics()
  let troubles: string[] = []
  const text = await oneLook(
    config,
    ({ state }, { simulatedInstead }) => {
      troubles = state.gpus().some(({ sample }) => sample !== null) ? [] : state.health().flatMap(({ message }) => message ?? [])
      if (options.json === true)
        return JSON.stringify(memoryStatusReport(state.now(), state.gpus(), state.processes(), statistics), null, 2)
      const note = simulatedInstead ? 'No GPU was found: these are SIMULATED GPUs. Run "gpuwarden doctor" to see why.\n' : ''
      return note + table(state.gpus(), state.processes())
    },
    { onEvent: (event) => statistics.accept(event) },
  )
  process.stdout.write(`${text}\n`)
  for (const trouble of troubles) process.stderr.write(`gpuwarden: ${trouble}\n`)
  return troubles.length === 0 ? EXIT.ok : EXIT.noSource
}

function table(gpus: readonly GpuView[], processes: readonly ProcessView[]): string {
  if (gpus.length === 0) return 'No GPU to show.'
  const rows = [['GPU', 'NAME', 'STATE', 'UTIL', 'MEMORY', 'MEM%', 'TEMP', 'POWER'], ...gpus.map(gpuRow)]
  const lines = alignColumns(rows)
  if (processes.length > 0)
    lines.push(
      '',
      ...alignColumns([['GPU', 'PID', 'USER', 'TYPE', 'MEMORY', 'COMMAND'], ...processes.map((process) => processRow(process, gpus))]),
    )
  return lines.join('\n')
}

function gpuRow({ info, sample }: GpuView): string[] {
  const used = sample?.memoryUsedBytes ?? null
  const total = sample?.memoryTotalBytes ?? info.memoryTotalBytes
  return [
    info.label,
    printable(info.name ?? 'unknown GPU'),
    sample?.state ?? 'no sample',
    formatPercent(sample?.utilizationRatio ?? null),
    `${formatBytes(used)} / ${formatBytes(total)}`,
    used === null || !total ? NOT_AVAILABLE : formatPercent(used / total),
    formatWhole(sample?.temperatureCelsius ?? null, '°C'),
    formatWhole(sample?.powerWatts ?? null, 'W'),
  ]
}

function processRow(process: ProcessView, gpus: readonly GpuView[]): string[] {
  const label = gpus.find((view) => view.info.id === process.gpu)?.info.label ?? '?'
  const command = printable(process.info?.command?.join(' ') ?? process.info?.name ?? NOT_AVAILABLE)
  return [
    label,
    String(process.pid),
    printable(process.info?.user ?? NOT_AVAILABLE),
    process.type,
    formatBytes(process.memoryUsedBytes),
    command.slice(0, 80),
  ]
}
