/** The memory ledger and the fragmentation of runs, for a terminal and for --json. */
import { formatBytes, formatPercent, formatShare, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { DeviceLedger, FragmentationFigures, RunFragmentation } from './fragmentation-report.ts'

export const NO_RUN =
  'No training run reported its allocator. The device cannot show how much of the memory in use is cached or fragmented.\n' +
  'Report steps with the SDK (TrainingMonitorCallback); a recording holds them in training_metrics_*.jsonl.'

export function fragmentationText({ runs, devices }: FragmentationFigures): string {
  const lines: string[] = []
  for (const device of devices) lines.push(...ledgerLines(device), '')
  for (const run of runs) lines.push(...runLines(run), '')
  if (runs.length === 0) lines.push(NO_RUN)
  return lines.join('\n').trimEnd()
}

function ledgerLines({ label, name, ledger, simulated }: DeviceLedger): string[] {
  const head = `GPU ${label}  ${printable(name ?? 'unknown GPU')}${simulated ? '  SIMULATED' : ''}`
  if (ledger === null) return [head, '  The device does not report its total memory.']
  const lines = [`${head}  ${formatBytes(ledger.totalBytes)}`]
  for (const { name: entry, bytes, explanation } of ledger.entries)
    lines.push(
      `  ${entry.padEnd(22)} ${formatBytes(bytes).padStart(9)} ${formatShare(bytes, ledger.totalBytes).padStart(6)}  ${explanation}`,
    )
  if (ledger.adjusted) lines.push('  (The readings are from slightly different moments; some were cut so that the sum is right.)')
  return lines
}

function runLines(run: RunFragmentation): string[] {
  const where = run.deviceId === null ? '' : ` on GPU ${run.deviceId}`
  return [
    `Run ${printable(run.run)}${run.rank > 0 ? ` rank ${run.rank}` : ''}${where}, step ${run.step} (${run.steps} steps seen)`,
    `  fragmentation  ${formatPercent(run.ratio)} of ${formatBytes(run.reservedBytes)} reserved: ${formatBytes(run.inactiveSplitBytes)} fragmented (unusable pieces of segments that are partly in use)${run.level === null ? '' : ` (${run.level})`}; highest ${formatPercent(run.highestRatio)}`,
    `  cache          ${formatPercent(run.releasableCacheRatio)}: ${formatBytes(run.releasableCacheBytes)} that torch.cuda.empty_cache() would free; this is not fragmentation`,
    `  allocated      ${formatBytes(run.allocatedBytes)}; allocation retries: ${run.allocRetries ?? NOT_AVAILABLE}`,
    ...(run.level === 'high' || run.level === 'medium'
      ? ['  To reduce it: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and keep shapes the same from step to step.']
      : []),
  ]
}

export function fragmentationRecord({ runs, devices }: FragmentationFigures) {
  return {
    runs: runs.map((run) => ({
      run: run.run,
      rank: run.rank,
      device_id: run.deviceId,
      step: run.step,
      timestamp: new Date(run.at).toISOString(),
      steps_count: run.steps,
      allocated_bytes: run.allocatedBytes,
      reserved_bytes: run.reservedBytes,
      inactive_split_bytes: run.inactiveSplitBytes,
      fragmentation_ratio: run.ratio,
      fragmentation_level: run.level,
      highest_fragmentation_ratio: run.highestRatio,
      highest_at: run.highestAt === null ? null : new Date(run.highestAt).toISOString(),
      releasable_cache_bytes: run.releasableCacheBytes,
      releasable_cache_ratio: run.releasableCacheRatio,
      num_alloc_retries: run.allocRetries,
    })),
    devices: Object.fromEntries(
      devices.map((device) => [
        device.label,
        {
          name: device.name,
          timestamp: new Date(device.at).toISOString(),
          total_bytes: device.ledger?.totalBytes ?? null,
          ledger: device.ledger?.entries ?? null,
          adjusted: device.ledger?.adjusted ?? null,
          runs: device.runs,
          simulated: device.simulated,
        },
      ]),
    ),
  }
}
