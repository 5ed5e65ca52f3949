import type { ComponentChildren } from 'preact'
import { countBySeverity } from '../../../../src/core/known/findings.ts'
import type { Reading } from '../../../../src/core/model.ts'
import { timeline } from '../../live/replay.ts'
import { findings, gpus, host, isHostLive, isReplay, link, playedAt } from '../../live/store.ts'
import { formatCount, formatPercent, formatUsed, formatWatts, memoryTone, NOT_AVAILABLE, type Tone } from '../../words.ts'
import { totalsOf } from './totals.ts'

export function TotalsBar() {
  const totals = totalsOf(
    gpus.value.map((cell) => ({
      info: cell.info.value,
      sample: cell.sample.value,
      processes: cell.processes.value,
      isCurrent: cell.freshness.value.kind === 'live',
    })),
  )
  const memory = ratioOf(totals.memoryUsedBytes, totals.memoryTotalBytes)
  const power = totals.powerWatts === null ? NOT_AVAILABLE : formatWatts(totals.powerWatts)
  return (
    <section class="panel totals" aria-label="The whole machine">
      <Total label="GPUs" aside={totals.migInstances > 0 ? `${totals.migInstances} instances` : null}>
        {totals.gpus}
        {totals.notCurrent > 0 && <small class="tone-critical"> {totals.notCurrent} not current</small>}
      </Total>
      <Total label="Utilization, mean">{formatPercent(totals.utilizationRatio)}</Total>
      <Total label="GPU memory" tone={memoryTone(memory)} aside={memory === null ? null : formatPercent(memory)}>
        {bytesOf(totals.memoryUsedBytes, totals.memoryTotalBytes)}
      </Total>
      <Total label="Power" aside={totals.powerCapWatts === null ? null : `cap ${formatWatts(totals.powerCapWatts)}`}>
        {power}
      </Total>
      <Total label="GPU processes" aside={totals.users > 0 ? formatCount(totals.users, 'user') : null}>
        <a href="#/processes">{totals.processes ?? NOT_AVAILABLE}</a>
      </Total>
      <HostTotals />
      <FindingTotal />
    </section>
  )
}

function HostTotals() {
  const sample = host.value
  const memory = ratioOf(sample?.memoryUsedBytes ?? null, sample?.memoryTotalBytes ?? null)
  const cores = sample?.cpuCount ?? null
  return (
    <div class={`total-pair ${isHostLive.value ? '' : 'not-current'}`}>
      <Total label="Host CPU" aside={cores === null ? null : `${cores} cores`}>
        {formatPercent(sample?.cpuRatio ?? null)}
      </Total>
      <Total label="Host RAM" tone={memoryTone(memory)} aside={memory === null ? null : formatPercent(memory)}>
        {bytesOf(sample?.memoryUsedBytes ?? null, sample?.memoryTotalBytes ?? null)}
      </Total>
    </div>
  )
}

function FindingTotal() {
  const list = findings.value
  const { critical, warning } = countBySeverity(list)
  const isUnknown = list.length === 0 && link.value.state !== 'live'
  // A recording in which something was found is not all good because it is over.
  const earlier =
    list.length === 0 && isReplay.value ? (timeline.value?.marks ?? []).filter(({ at }) => at <= (playedAt.value ?? 0)).length : 0
  const tone: Tone = isUnknown || earlier > 0 ? 'muted' : critical > 0 ? 'critical' : warning > 0 ? 'warning' : 'good'
  return (
    <Total
      label="Findings"
      aside={
        critical > 0 ? `${critical} critical` : warning > 0 ? formatCount(warning, 'warning') : earlier > 0 ? `${earlier} earlier` : null
      }
      tone={tone}
    >
      <a href="#/alerts" class={`tone-${tone}`}>
        {isUnknown ? NOT_AVAILABLE : list.length === 0 ? 'none' : list.length}
      </a>
    </Total>
  )
}

interface TotalProps {
  readonly label: string
  readonly aside?: string | null
  readonly tone?: Tone
  readonly children: ComponentChildren
}

function Total({ label, aside = null, tone = 'plain', children }: TotalProps) {
  return (
    <div class="total">
      <span class="label">{label}</span>
      <span class={`value tone-${tone}`}>{children}</span>
      <span class="tiny faint">{aside}</span>
    </div>
  )
}

function bytesOf(used: Reading, total: Reading): string {
  return used === null && total === null ? NOT_AVAILABLE : formatUsed(used, total)
}

function ratioOf(used: Reading, total: Reading): Reading {
  return used === null || !total ? null : used / total
}
