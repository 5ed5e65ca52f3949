import { clockReasons, isThrottled, temperatureTone } from '../../../../src/core/gpu-words.ts'
import { isGpuOfRun } from '../../../../src/core/known/about-gpu.ts'
import type { Finding, ProcessView } from '../../../../src/core/model.ts'
import type { RanksAnswer, RunAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { gpus, hostname } from '../../live/store.ts'
import { place, setQuery } from '../../location.ts'
import { Badge, Choices, Fault, Panel } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { formatAge, formatBytes, formatCount, formatPercent, formatSeconds, formatWhole, NOT_AVAILABLE } from '../../words.ts'
import { type JudgedRank, judgedRanks, type RankOrder, shownRanks } from './rank-order.ts'
import { runPath } from './use-run.ts'

const REFRESH_MS = 5000

const ORDERS = [
  { value: 'rank', label: 'By rank' },
  { value: 'slowest', label: 'Slowest first' },
] as const

export function RanksPanel({
  id,
  run,
  findings,
  isRunning,
}: {
  readonly id: string
  readonly run: RunAnswer | null
  readonly findings: readonly Finding[]
  readonly isRunning: boolean
}) {
  const polled = usePolled(
    `ranks ${id}`,
    (signal) => ask<RanksAnswer>(`${runPath(id)}/ranks`, {}, { signal }),
    isRunning ? REFRESH_MS : null,
  ).value
  const ranks = judgedRanks(polled.answer?.ranks ?? [], findings)
  if (ranks.length < 2) return <Fault text={polled.code === 'not_found' ? null : polled.fault} />
  const order: RankOrder = place.value.query.ranks === 'slowest' ? 'slowest' : 'rank'
  const { rows, leftOut } = shownRanks(ranks, order)
  const slow = ranks.filter(({ straggles }) => straggles !== null).length
  return (
    <Panel
      title={`Ranks (${ranks.length})`}
      aside={
        <>
          {slow > 0 ? <Badge tone="warning">{formatCount(slow, 'straggler')}</Badge> : <Badge tone="good">all keep up</Badge>}
          <Choices<RankOrder>
            label="Order of ranks"
            options={ORDERS}
            value={order}
            onChoose={(value) => setQuery({ ranks: value === 'rank' ? null : value })}
          />
        </>
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="scroll-x tall" aria-label="Ranks" tabIndex={0}>
        <table class="ranks">
          <thead>
            <tr>
              <th class="number">Rank</th>
              <th>Step time</th>
              <th class="number">Against the others</th>
              <th class="number">Step</th>
              <th class="number">Behind</th>
              <th>Phases</th>
              <th class="number">Tensors</th>
              <th>GPU</th>
              <th class="number">Host memory</th>
              <th class="number">PID</th>
              <th class="number">Last heard</th>
              <th>Mark</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((rank) => (
              <Row key={rank.rank} rank={rank} run={run} />
            ))}
          </tbody>
        </table>
      </section>
      {leftOut > 0 && (
        <p class="small faint">
          The {rows.length} slowest are shown; {leftOut} more keep up better.
        </p>
      )}
    </Panel>
  )
}

function Row({ rank, run }: { readonly rank: JudgedRank; readonly run: RunAnswer | null }) {
  const { gpu, process } = machineOf(rank, run)
  const speed = rank.relativeSpeed
  return (
    <tr>
      <td class="number">{rank.rank}</td>
      <td>
        <span class="rank-bar">
          <i class={rank.straggles === null ? 'fill-1' : 'fill-warning'} style={{ width: `${Math.round(rank.share * 100)}%` }} />
          <span>{formatSeconds(rank.stepSeconds)}</span>
        </span>
      </td>
      <td class="number">{speed === null ? NOT_AVAILABLE : `${speed.toFixed(2)} ×`}</td>
      <td class="number">{rank.lastStep}</td>
      <td class="number">{rank.behindSteps === 0 ? <span class="faint">0</span> : rank.behindSteps}</td>
      <td class="nowrap" title={(rank.phaseShares ?? []).map(({ phase, ratio }) => `${phase} ${formatPercent(ratio)}`).join(', ')}>
        {phaseText(rank)}
      </td>
      <td class="number">{formatBytes(rank.memoryAllocatedBytes)}</td>
      <td class="nowrap">{gpu === null ? <span class="faint">{placeText(rank, run)}</span> : <GpuNow cell={gpu} />}</td>
      <td class="number">{formatBytes(process?.info?.residentBytes ?? null)}</td>
      <td class="number mono">{rank.pid ?? NOT_AVAILABLE}</td>
      <td class="number">{formatAge(present() - rank.lastAt)}</td>
      <td class="rank-mark">
        {rank.straggles !== null && (
          <Badge tone="warning" title={rank.straggles}>
            straggler
          </Badge>
        )}
      </td>
    </tr>
  )
}

/** Its GPU with heat and what slows it down. */
function GpuNow({ cell }: { readonly cell: GpuCell }) {
  const info = cell.info.value
  const sample = cell.sample.value
  const reasons = sample?.clockEventReasons ?? null
  const isSlow = reasons !== null && isThrottled(reasons)
  return (
    <>
      {info.label}{' '}
      <span class={`tone-${temperatureTone(sample?.temperatureCelsius ?? null, info)}`}>
        {formatWhole(sample?.temperatureCelsius ?? null, '°C')}
      </span>{' '}
      {isSlow && <Badge tone="warning">{clockReasons(reasons)[0]?.short ?? 'slowed down'}</Badge>}
    </>
  )
}

function machineOf({ rank, pid }: JudgedRank, run: RunAnswer | null): { gpu: GpuCell | null; process: ProcessView | null } {
  const place = run?.places?.find((one) => one.rank === rank)
  const isHere = !place?.host || place.host === hostname.value
  const cells = isHere ? gpus.value : []
  const named = cells.find((cell) => place?.gpu != null && isGpuOfRun(cell.info.value, place.gpu))
  const gpu = named ?? cells.find((cell) => pid !== null && cell.processes.value?.some((process) => process.pid === pid)) ?? null
  return { gpu, process: gpu?.processes.value?.find((process) => process.pid === pid) ?? null }
}

function placeText({ rank }: JudgedRank, run: RunAnswer | null): string {
  const place = run?.places?.find((one) => one.rank === rank)
  return [place?.host === hostname.value ? null : place?.host, place?.gpu].filter((part) => part != null).join(', ') || NOT_AVAILABLE
}

/** The largest phase, or what it waits for. */
function phaseText({ phaseShares = [], pipelineStage = null }: JudgedRank): string {
  const [largest] = [...phaseShares].sort((a, b) => b.ratio - a.ratio)
  const stage = pipelineStage === null ? '' : `stage ${pipelineStage}: `
  return largest ? `${stage}${formatPercent(largest.ratio)} ${largest.phase}` : stage || NOT_AVAILABLE
}
