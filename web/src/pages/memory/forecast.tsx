import type { ReadonlySignal } from '@preact/signals'
import { messageAt } from '../../../../src/core/forecast-words.ts'
import { runName } from '../../../../src/core/known/runs.ts'
import type { Finding, RiskLevel } from '../../../../src/core/model.ts'
import { TimeChart } from '../../chart/time-chart.tsx'
import { presentOf, type Track } from '../../history.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { findings, runs } from '../../live/store.ts'
import { FindingItem } from '../../parts/finding-item.tsx'
import { Badge, Fact, Fault, Panel } from '../../parts/parts.tsx'
import { boundsOf, type TimeRange, zoomOut, zoomTo } from '../../time-range.ts'
import { clockTime, formatAge, formatBytes, formatPercent, NOT_AVAILABLE, type Tone } from '../../words.ts'
import { type Allocator, isFresh } from './allocators.ts'
import { fanOf, forecastsOf } from './forecast-fan.ts'
import { type Reason, whyNoForecast } from './no-forecast.ts'
import { pace } from './pace.ts'

interface ForecastProps {
  readonly cell: GpuCell
  readonly range: TimeRange
  readonly track: ReadonlySignal<Track>
  readonly allocators: ReadonlySignal<readonly Allocator[]>
}

const RISK_TONES: Readonly<Record<RiskLevel, Tone>> = { low: 'muted', medium: 'plain', high: 'warning', critical: 'critical' }

export function ForecastPanel({ cell, range, track, allocators }: ForecastProps) {
  const [nearest, ...others] = forecastsOf(findings.value, cell.info.value)
  const isLive = cell.freshness.value.kind === 'live'
  const reason = nearest ? null : reasonOf({ cell, track, allocators })
  return (
    <Panel
      title="Forecast"
      aside={
        nearest && !isLive ? (
          <Badge tone="muted">as of the last readings</Badge>
        ) : nearest?.riskLevel ? (
          <Badge tone={RISK_TONES[nearest.riskLevel]}>risk {nearest.riskLevel}</Badge>
        ) : reason?.isJudged ? (
          <Badge tone="good">no OOM ahead</Badge>
        ) : (
          <Badge tone="muted">not known</Badge>
        )
      }
    >
      {nearest && <Statement finding={nearest} />}
      {reason && (
        <p class="small">
          <strong>{reason.title}.</strong> <span class="faint">{reason.text}</span>
        </p>
      )}
      <FanChart cell={cell} range={range} track={track} finding={nearest ?? null} />
      {others.length > 0 && (
        <ul class="list">
          {others.map((finding) => (
            <FindingItem key={finding.fingerprint} finding={finding} isShort />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Statement({ finding }: { readonly finding: Finding }) {
  const { predictedAt, predictedEarliestAt, predictedLatestAt, evidence, confidence, subject } = finding
  const at = present()
  const moment = (time: number | null) => (time === null ? NOT_AVAILABLE : clockTime(time, at))
  return (
    <>
      <div class="facts forecast-facts">
        <Fact label="Full at" tone={RISK_TONES[finding.riskLevel ?? 'low']}>
          {moment(predictedAt)}
        </Fact>
        <Fact label="Full in">{predictedAt === null ? NOT_AVAILABLE : formatAge(predictedAt - at)}</Fact>
        <Fact label="Earliest – latest">
          {moment(predictedEarliestAt)} – {moment(predictedLatestAt)}
        </Fact>
        <Fact label="Confidence">{formatPercent(confidence)}</Fact>
        <Fact label="Growth">{typeof evidence.bytesPerSecond === 'number' ? pace(evidence.bytesPerSecond) : NOT_AVAILABLE}</Fact>
        <Fact label="Memory left">{typeof evidence.roomBytes === 'number' ? formatBytes(evidence.roomBytes) : NOT_AVAILABLE}</Fact>
        <Fact label="Based on">
          {subject.run === null ? (
            'the device'
          ) : (
            <>
              the allocator of{' '}
              <a href={`#/training/${encodeURIComponent(subject.run)}`}>
                {runName({ id: subject.run, run: runs.value.get(subject.run) ?? null })}
              </a>
            </>
          )}
        </Fact>
      </div>
      <p class="small breakable">{messageAt(finding, at)}</p>
      {finding.advice.length > 0 && (
        <ul class="advice small faint">
          {finding.advice.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
    </>
  )
}

function reasonOf({ cell, track, allocators }: Pick<ForecastProps, 'cell' | 'track' | 'allocators'>): Reason {
  const { at, columns } = track.value
  return whyNoForecast({
    at,
    used: columns.memoryUsedBytes ?? [],
    totalBytes: cell.info.value.memoryTotalBytes,
    isLive: cell.freshness.value.kind === 'live',
    hasAllocator: allocators.value.some(({ step }) => isFresh(step, presentOf(cell))),
  })
}

function FanChart({ cell, range, track, finding }: Omit<ForecastProps, 'allocators'> & { readonly finding: Finding | null }) {
  const { at, columns, min, max, from, to, state, fault } = track.value
  const total = cell.info.value.memoryTotalBytes
  const moment = Math.max(presentOf(cell), at.at(-1) ?? 0)
  const isNowShown = range.kind === 'last' || range.to > moment
  const used = columns.memoryUsedBytes ?? []
  const past = boundsOf(range, moment)
  const input = { now: moment, usedBytes: used.at(-1) ?? null, totalBytes: total ?? 0, pastMs: moment - past.from }
  const fan = finding && total !== null && isNowShown && state === 'ready' ? fanOf(finding, input) : null
  const { predictedAt = null, predictedEarliestAt = null, predictedLatestAt = null } = finding ?? {}
  return (
    <>
      <Fault text={fault} />
      <TimeChart
        title={fan ? 'Memory in use, with forecast' : 'Memory in use'}
        at={at}
        series={[{ label: 'in use', values: used, area: true, min: min?.memoryUsedBytes, max: max?.memoryUsedBytes }]}
        from={from}
        to={fan && range.kind === 'last' ? fan.to : to}
        fan={fan?.fan ?? null}
        format={formatBytes}
        least={0}
        most={total}
        limits={total === null ? [] : [{ value: total, label: `capacity ${formatBytes(total)}` }]}
        bands={
          fan && predictedEarliestAt !== null && predictedLatestAt !== null
            ? [{ from: predictedEarliestAt, to: predictedLatestAt, label: 'full', tone: 'critical' }]
            : []
        }
        marks={fan && predictedAt !== null ? [{ at: predictedAt, label: 'expected to be full', tone: 'critical' }] : []}
        height={240}
        onZoom={zoomTo}
        onReset={zoomOut}
        empty={state === 'loading' ? 'Loading…' : 'The agent has no readings for this time range.'}
      />
      {fan && finding?.subject.run != null && (
        <p class="tiny faint">
          The forecast follows what the run needs. It starts below the memory in use when the run also holds a cache.
        </p>
      )}
    </>
  )
}
