/** One row per GPU: for machines with so many that cards would not fit a screen. */
import { Sparkline } from '../../chart/sparkline.tsx'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { placeHash } from '../../place.ts'
import { formatPercent, formatUsed, formatWatts, memoryTone, NOT_AVAILABLE, powerCap, powerTone, temperatureTone } from '../../words.ts'
import { Clocks, cardName, FindingCount, Owners } from './gpu-card.tsx'
import { Forecast, MemoryMeter } from './memory-bar.tsx'
import { holdingOf } from './memory-holders.ts'
import { StateBadge } from './state-note.tsx'

export function GpuTable({ cells }: { readonly cells: readonly GpuCell[] }) {
  const isSimulated = cells.some((cell) => cell.info.value.provenance === 'simulated')
  return (
    <section class="panel flush scroll-x" aria-label="GPUs">
      <table class="gpu-table">
        <caption class="visually-hidden">{isSimulated ? 'Simulated GPUs' : 'GPUs'}, one per row</caption>
        <thead>
          <tr>
            <th>GPU</th>
            <th>State</th>
            <th class="number">Use</th>
            <th>5 min</th>
            <th>Memory (GiB)</th>
            <th class="number">°C</th>
            <th class="number">W</th>
            <th>Used by</th>
            <th>Forecast</th>
            <th>Clocks</th>
          </tr>
        </thead>
        <tbody>
          {cells.map((cell) => (
            <GpuRow key={cell.id} cell={cell} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function GpuRow({ cell }: { readonly cell: GpuCell }) {
  const info = cell.info.value
  const freshness = cell.freshness.value
  const isCurrent = freshness.kind === 'live'
  const sample = cell.sample.value
  const holding = sample && holdingOf(sample, cell.processes.value, cell.info.value.unifiedMemory)
  const temperature = sample?.temperatureCelsius ?? null
  const power = sample?.powerWatts ?? null
  const limit = info.temperatureSlowdownCelsius ?? info.temperatureMaxCelsius
  const cap = powerCap(info)
  return (
    <tr class={`${isCurrent ? '' : 'not-current'} is-${freshness.kind}`}>
      <th scope="row">
        <a href={placeHash(['gpu', info.label])} title={info.name ?? ''}>
          {info.label} <span class="faint">{cardName(info)}</span>
        </a>
      </th>
      <td class="nowrap">
        {info.provenance === 'simulated' && (
          <span class="badge simulated" title="Simulated">
            SIM
          </span>
        )}{' '}
        <StateBadge cell={cell} freshness={freshness} /> <FindingCount cell={cell} />
      </td>
      <td class="number">{formatPercent(sample?.utilizationRatio ?? null)}</td>
      <td class="row-picture">{isCurrent ? <Sparkline cell={cell} /> : null}</td>
      <td class="row-memory">
        <MemoryMeter holding={holding} />
        <span class={`tone-${memoryTone(holding?.usedRatio ?? null)}`}>
          {holding ? formatUsed(sample?.memoryUsedBytes ?? null, holding.totalBytes).replace(' GiB', '') : NOT_AVAILABLE}
        </span>
      </td>
      <td class={`number tone-${temperatureTone(temperature, info)}`} title={limit === null ? undefined : `slows down at ${limit} °C`}>
        {temperature === null ? NOT_AVAILABLE : Math.round(temperature)}
        {limit !== null && <span class="faint">/{Math.round(limit)}</span>}
      </td>
      <td class={`number tone-${powerTone(power, info)}`} title={cap === null ? undefined : `power cap ${formatWatts(cap)}`}>
        {power === null ? NOT_AVAILABLE : Math.round(power)}
        {cap !== null && <span class="faint">/{Math.round(cap)}</span>}
      </td>
      <td class="row-owners cut">
        <Owners cell={cell} />
      </td>
      <td class="row-forecast cut">
        <Forecast cell={cell} isCurrent={isCurrent} />
      </td>
      <td class="row-clocks cut">
        <Clocks sample={sample} />
      </td>
    </tr>
  )
}
