/** One GPU at a glance. Its parts are drawn again by themselves when what they show changes. */

import type { ComponentChildren } from 'preact'
import { isAboutGpu } from '../../../../src/core/known/about-gpu.ts'
import type { GpuInfo, GpuSample, Reading } from '../../../../src/core/model.ts'
import { Sparkline } from '../../chart/sparkline.tsx'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { findings, runs } from '../../live/store.ts'
import { Badge, Meter } from '../../parts/parts.tsx'
import { placeHash } from '../../place.ts'
import {
  clockReasons,
  formatCount,
  formatPercent,
  NOT_AVAILABLE,
  ownersOf,
  powerCap,
  powerTone,
  severityTone,
  shortModel,
  type Tone,
  temperatureTone,
} from '../../words.ts'
import { Forecast, MemoryBlock } from './memory-bar.tsx'
import { StateNote } from './state-note.tsx'

/** `isAlone`: the only one there is, with room for a larger picture. */
export function GpuCard({ cell, isAlone = false }: { readonly cell: GpuCell; readonly isAlone?: boolean }) {
  const info = cell.info.value
  const freshness = cell.freshness.value
  const isCurrent = freshness.kind === 'live'
  return (
    <article class={`panel gpu-card ${isCurrent ? '' : 'not-current'} is-${freshness.kind}`} aria-label={`GPU ${info.label}`}>
      <header class="gpu-head">
        <h3>
          <a href={placeHash(['gpu', info.label])}>GPU {info.label}</a>
        </h3>
        <span class="cut faint grow" title={info.name ?? ''}>
          {cardName(info)}
        </span>
        <Origin info={info} />
        <FindingCount cell={cell} />
      </header>
      <Figures cell={cell} isCurrent={isCurrent}>
        {isCurrent ? <Picture cell={cell} isLarge={isAlone} /> : <StateNote cell={cell} freshness={freshness} />}
      </Figures>
    </article>
  )
}

/** What is large enough to be read has its scale and its words. */
function Picture({ cell, isLarge }: { readonly cell: GpuCell; readonly isLarge: boolean }) {
  if (!isLarge) return <Sparkline cell={cell} />
  return (
    <div class="large-picture">
      <div class="scale tiny faint" aria-hidden="true">
        <span>100%</span>
        <span>50%</span>
        <span>0%</span>
      </div>
      <div class="plot">
        <Sparkline cell={cell} />
      </div>
      <div class="picture-foot tiny faint" aria-hidden="true">
        <span>−5 min</span>
        <span class="grow" />
        <span>
          <i class="swatch fill-1" /> utilization
        </span>
        <span>
          <i class="swatch fill-2" /> memory
        </span>
        <span class="grow" />
        <span>now</span>
      </div>
    </div>
  )
}

/** The badge says already that it is simulated. */
export function cardName(info: GpuInfo): string {
  return shortModel(info).replace(/^Simulated /, '')
}

export function Origin({ info }: { readonly info: GpuInfo }) {
  if (info.provenance === 'simulated') return <Badge tone="simulated">SIMULATED</Badge>
  return info.provenance === 'replay' ? <Badge>REPLAY</Badge> : null
}

/** Of this GPU; nothing when nothing is wrong. */
export function FindingCount({ cell }: { readonly cell: GpuCell }) {
  const own = findings.value.filter(({ subject }) => isAboutGpu(subject, cell.info.value, runs.value))
  const [worst] = own
  if (!worst) return null
  return (
    <Badge tone={severityTone(worst.severity)} title={own.map(({ message }) => message).join('\n')}>
      {formatCount(own.length, 'finding')}
    </Badge>
  )
}

function Figures({
  cell,
  isCurrent,
  children,
}: {
  readonly cell: GpuCell
  readonly isCurrent: boolean
  readonly children: ComponentChildren
}) {
  const sample = cell.sample.value
  const info = cell.info.value
  return (
    <>
      <div class="card-use">
        <div class="card-figure" title="Share of time the GPU was busy">
          <b>{formatPercent(sample?.utilizationRatio ?? null)}</b>
          <span class="label">utilization</span>
        </div>
        <div class="card-picture">{children}</div>
      </div>
      <MemoryBlock sample={sample} processes={cell.processes.value} isOfHost={info.unifiedMemory} />
      <p class="card-forecast small cut">
        <Forecast cell={cell} isCurrent={isCurrent} />
      </p>
      <div class="card-pair">
        <Against
          label="Temp"
          value={sample?.temperatureCelsius ?? null}
          limit={info.temperatureSlowdownCelsius ?? info.temperatureMaxCelsius}
          unit="°C"
          tone={temperatureTone(sample?.temperatureCelsius ?? null, info)}
          limitName="The card slows down at its limit"
        />
        <Against
          label="Power"
          value={sample?.powerWatts ?? null}
          limit={powerCap(info)}
          unit="W"
          tone={powerTone(sample?.powerWatts ?? null, info)}
          limitName="Power cap"
        />
      </div>
      <dl class="card-words">
        <div>
          <dt>Clocks</dt>
          <dd>
            <Clocks sample={sample} />
          </dd>
        </div>
        <div>
          <dt>Used by</dt>
          <dd class="cut">
            <Owners cell={cell} />
          </dd>
        </div>
      </dl>
    </>
  )
}

interface AgainstProps {
  readonly label: string
  readonly value: Reading
  readonly limit: Reading
  readonly unit: string
  readonly tone: Tone
  readonly limitName: string
}

/** A reading against the card's own limit. */
function Against({ label, value, limit, unit, tone, limitName }: AgainstProps) {
  const figure = value === null ? NOT_AVAILABLE : `${Math.round(value)}`
  const of = limit === null ? ` ${unit}` : ` / ${Math.round(limit)} ${unit}`
  const ratio = value === null || !limit ? 0 : Math.max(0, value / limit)
  return (
    <div class="against" title={limit === null ? undefined : `${limitName}: ${Math.round(limit)} ${unit}`}>
      <div class="card-line">
        <span class="label">{label}</span>
        <span class="grow" />
        <span>
          <b class={`tone-${tone}`}>{figure}</b>
          <span class="faint">{value === null && limit === null ? '' : of}</span>
        </span>
      </div>
      {limit === null ? (
        <div class="no-meter" title="The card does not report its limit" />
      ) : (
        <Meter
          label={label}
          value={`${figure}${of}`}
          parts={[{ ratio, fill: tone === 'warning' || tone === 'critical' ? `fill-${tone}` : 'fill-7' }]}
        />
      )}
    </div>
  )
}

/** What limits the clocks, in words. */
export function Clocks({ sample }: { readonly sample: GpuSample | null }) {
  if (!sample || sample.clockEventReasons === null) return <span class="faint">{NOT_AVAILABLE}</span>
  const reasons = clockReasons(sample.clockEventReasons)
  const worst = reasons.filter(({ words }) => words !== 'idle')
  const [first, ...others] = worst
  if (!first) return <span class="faint">{reasons.length > 0 ? 'idle' : 'not limited'}</span>
  return (
    <span class="clock-reasons" title={worst.map(({ words }) => words).join(', ')}>
      <Badge tone={first.tone}>{first.words}</Badge>
      {others.length > 0 && <span class="faint tiny">+{others.length}</span>}
    </span>
  )
}

export function Owners({ cell }: { readonly cell: GpuCell }) {
  const sample = cell.sample.value
  if (!sample) return <span class="faint">{NOT_AVAILABLE}</span>
  if (sample.state !== 'ok') return <span class="faint">{NOT_AVAILABLE}</span>
  if (sample.processes === null) return <span class="faint">not reported</span>
  const owners = ownersOf(cell.processes.value)
  if (owners === null) return <span class="faint">no process</span>
  const count = cell.processes.value.length
  return (
    <a href={placeHash(['processes'], { gpu: cell.info.value.label })} title={`${owners}: ${formatCount(count, 'process', 'processes')}`}>
      {owners}
    </a>
  )
}
