/** Readings that few cards have: shown where they are known. */
import type { Tone } from '../../../../src/core/gpu-words.ts'
import type { GpuInfo, GpuSample } from '../../../../src/core/model.ts'
import { Fact } from '../../parts/parts.tsx'
import { formatPercent, formatUsed, formatWatts } from '../../words.ts'

export function KnownFacts({ sample, info }: { readonly sample: GpuSample; readonly info: GpuInfo }) {
  const rows: readonly (readonly [string, string | null, Tone?])[] = [
    ['Module power', sample.modulePowerWatts === null ? null : formatWatts(sample.modulePowerWatts)],
    ['Memory power', sample.memoryPowerWatts === null ? null : formatWatts(sample.memoryPowerWatts)],
    ['JPEG engine', sample.jpegRatio ? formatPercent(sample.jpegRatio) : null],
    ['Optical flow', sample.ofaRatio ? formatPercent(sample.ofaRatio) : null],
    ['BAR1', sample.bar1UsedBytes === null ? null : formatUsed(sample.bar1UsedBytes, info.bar1TotalBytes)],
    [
      'NVLinks up',
      sample.nvlinkActiveCount === null ? null : `${sample.nvlinkActiveCount} of ${info.nvlinks.length}`,
      sample.nvlinkActiveCount !== null && sample.nvlinkActiveCount < info.nvlinks.length ? 'warning' : 'plain',
    ],
    ['NVLink fabric', fabricWords(sample), sample.fabricHealth === 2 ? 'critical' : sample.fabricHealth === 3 ? 'warning' : 'plain'],
    ['Repair', repairWords(sample), 'warning'],
  ]
  return (
    <>
      {rows.flatMap(([label, value, tone]) =>
        value === null ? (
          []
        ) : (
          <Fact key={label} label={label} tone={tone ?? 'plain'}>
            {value}
          </Fact>
        ),
      )}
    </>
  )
}

function fabricWords({ fabricState, fabricHealth }: GpuSample): string | null {
  if (fabricState === null) return null
  const state = ['', 'not joined', 'joining', 'joined'][fabricState] ?? ''
  const health = ['', 'healthy', 'unhealthy', 'limited capacity'][fabricHealth ?? 0] ?? ''
  return health === '' ? state : `${state}, ${health}`
}

function repairWords({ channelRepairPending, tpcRepairPending }: GpuSample): string | null {
  return channelRepairPending === 1 || tpcRepairPending === 1 ? 'waits for a reset' : null
}
