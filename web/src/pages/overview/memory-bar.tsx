import { messageAt } from '../../../../src/core/forecast-words.ts'
import { forecastOf } from '../../../../src/core/known/about-gpu.ts'
import type { GpuSample, ProcessView } from '../../../../src/core/model.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { findings, runs } from '../../live/store.ts'
import { Meter } from '../../parts/parts.tsx'
import { placeHash } from '../../place.ts'
import { formatBytes, formatPercent, formatUsed, memoryTone, NOT_AVAILABLE } from '../../words.ts'
import { forecastTone, forecastWords } from './forecast.ts'
import { type Holder, type Holding, holdingOf } from './memory-holders.ts'

interface MemoryProps {
  readonly sample: GpuSample | null
  readonly processes: readonly ProcessView[]
  /** It is the memory of the host. */
  readonly isOfHost: boolean
}

const MOST_IN_LEGEND = 3

export function MemoryBlock({ sample, processes, isOfHost }: MemoryProps) {
  const holding = sample && holdingOf(sample, processes, isOfHost)
  const ratio = holding?.usedRatio ?? null
  return (
    <div class="card-memory">
      <div class="card-line">
        <span class="label">{isOfHost ? 'Memory of the host' : 'Memory'}</span>
        <span class={`tone-${memoryTone(ratio)}`}>{formatPercent(ratio)}</span>
        <span class="grow" />
        <span>{holding ? formatUsed(sample?.memoryUsedBytes ?? null, holding.totalBytes) : NOT_AVAILABLE}</span>
      </div>
      <MemoryMeter holding={holding} />
      <ul class="holders">{holding && inLegend(holding).map((holder) => <HolderItem key={holder.key} holder={holder} />)}</ul>
    </div>
  )
}

export function MemoryMeter({ holding }: { readonly holding: Holding | null }) {
  const holders = holding?.holders ?? []
  const said = holders.map(({ label, bytes }) => `${label} ${formatBytes(bytes)}`).join(', ')
  return (
    <Meter
      label="Memory by holder"
      value={said === '' ? 'not known' : said}
      parts={holders.flatMap(({ fill, ratio, title }) => (fill === null ? [] : [{ ratio, fill, label: title }]))}
    />
  )
}

/** The largest, and always what is free. */
function inLegend({ holders }: Holding): readonly Holder[] {
  const held = holders.filter(({ key }) => key !== 'free')
  const largest = new Set([...held].sort((a, b) => b.bytes - a.bytes).slice(0, MOST_IN_LEGEND))
  return holders.filter((holder) => largest.has(holder) || holder.key === 'free')
}

function HolderItem({ holder }: { readonly holder: Holder }) {
  const { fill, label, bytes, pid, title } = holder
  return (
    <li title={title}>
      <i class={`swatch ${fill ?? 'fill-free'}`} />
      {pid === null ? (
        <span class="cut">{label}</span>
      ) : (
        <a class="cut" href={placeHash(['processes'], { q: `pid:${pid}` })}>
          {label}
        </a>
      )}
      <b>{formatBytes(bytes)}</b>
    </li>
  )
}

/** One line always: it changes its words, not its place. */
export function Forecast({ cell, isCurrent }: { readonly cell: GpuCell; readonly isCurrent: boolean }) {
  const info = cell.info.value
  const finding = isCurrent ? forecastOf(info, findings.value, runs.value) : null
  if (!finding) return <span class="faint">{isCurrent ? 'no OOM ahead' : 'no forecast'}</span>
  return (
    <a class={`tone-${forecastTone(finding)}`} href={placeHash(['memory'], { gpu: info.label })} title={messageAt(finding, present())}>
      {forecastWords(finding, present())}
    </a>
  )
}
