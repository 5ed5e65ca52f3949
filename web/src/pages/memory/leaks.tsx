/** What grows and does not come back: of the device, its processes, their host memory, and the runs on it. */
import { evidenceRows } from '../../../../src/core/evidence.ts'
import { messageAt } from '../../../../src/core/forecast-words.ts'
import type { Finding } from '../../../../src/core/model.ts'
import type { FindingsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { findings } from '../../live/store.ts'
import { Badge, Empty, Fact, Panel } from '../../parts/parts.tsx'
import { PastFindings } from '../../parts/past-findings.tsx'
import { usePolled } from '../../poll.ts'
import { clockTime, formatAge, formatBytes, formatDuration, formatPercent, NOT_AVAILABLE } from '../../words.ts'
import { isAbout } from './forecast-fan.ts'
import { guiltyLine, isPlace } from './guilty-line.ts'
import { pace } from './pace.ts'

const PAST_REFRESH_MS = 60_000

export function LeakPanel({ cell }: { readonly cell: GpuCell }) {
  const own = findings.value.filter((one) => one.detector === 'leak' && concerns(one, cell))
  const news = own.map(({ fingerprint }) => fingerprint).join()
  const polled = usePolled(
    `leaks ${news}`,
    (signal) => ask<FindingsAnswer>('/api/v1/findings/history', { limit: 1000 }, { signal }),
    PAST_REFRESH_MS,
  )
  const past = (polled.value.answer?.findings ?? []).filter(
    (one) => one.detector === 'leak' && one.state === 'resolved' && concerns(one, cell),
  )
  const watched = cell.processes.value.length
  return (
    <Panel title="Leaks" aside={own.length > 0 ? <Badge tone="warning">{own.length} growing</Badge> : undefined}>
      {own.length === 0 ? (
        <Empty title="Nothing leaks">
          GPU {cell.info.value.label}
          {watched === 0 ? '' : `, ${watched === 1 ? 'its process' : `the largest of its ${watched} processes`}`} and the runs on it are
          watched; it takes some minutes to tell slow growth from a filling cache.
        </Empty>
      ) : (
        <ul class="list leaks">
          {own.map((finding) => (
            <Leak key={finding.fingerprint} finding={finding} cell={cell} />
          ))}
        </ul>
      )}
      <PastFindings list={past} />
    </Panel>
  )
}

/** A process's host memory has no GPU of its own: it belongs where the process is. */
function concerns(finding: Finding, cell: GpuCell): boolean {
  const { gpu, gpuIndex, pid } = finding.subject
  if (gpu === null && gpuIndex === null) return pid !== null && cell.processes.value.some((process) => process.pid === pid)
  return isAbout(finding, cell.info.value)
}

const SOURCES: Readonly<Record<string, string>> = {
  allocator: "run's allocator",
  process: 'process',
  device: 'device',
  'host memory': 'host memory (RSS)',
}

function Leak({ finding, cell }: { readonly finding: Finding; readonly cell: GpuCell }) {
  const { evidence, subject } = finding
  const known = (name: string) => (typeof evidence[name] === 'number' ? evidence[name] : null)
  const perSecond = known('bytesPerSecond')
  const perStep = known('bytesPerStep')
  const fullAt = known('fullAt')
  const at = present()
  const rows = evidenceRows(evidence, (moment) => clockTime(moment, at))
  const line = guiltyLine(rows)
  return (
    <li class="leak">
      <div class="leak-head">
        <Badge tone="warning">leak</Badge>
        <strong class="breakable">
          <Subject finding={finding} cell={cell} />
        </strong>
        <span class="tiny faint">{SOURCES[String(evidence.source)] ?? ''}</span>
      </div>
      <div class="facts">
        <Fact label="Growth" tone="warning">
          {perSecond === null ? NOT_AVAILABLE : pace(perSecond)}
          {perStep !== null && <small class="faint"> ({formatBytes(perStep)} per step)</small>}
        </Fact>
        <Fact label="Since">
          {clockTime(finding.since, at)} <small class="faint">({formatAge(at - finding.since)})</small>
        </Fact>
        <Fact label="Total growth">{formatBytes(known('riseBytes'))}</Fact>
        <Fact label="Full in">{fullAt === null ? NOT_AVAILABLE : `about ${formatDuration(Math.max(0, fullAt - at))}`}</Fact>
        <Fact label="Confidence">{formatPercent(finding.confidence)}</Fact>
      </div>
      {line !== null && (
        <p class="small">
          Allocated at <code class="breakable">{line}</code>
        </p>
      )}
      <p class="small breakable">{messageAt(finding, at)}</p>
      {subject.run === null && subject.user !== null && <p class="small faint">Owner: {subject.user}</p>}
      <details class="small" open>
        <summary>Evidence</summary>
        <table>
          <tbody>
            {rows
              .filter((row) => !isPlace(row))
              .map(({ label, value }) => (
                <tr key={`${label} ${value}`}>
                  <th scope="row">{label}</th>
                  <td class="number">{value}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </details>
      <ul class="advice small faint">
        {finding.advice.map((advice) => (
          <li key={advice}>{advice}</li>
        ))}
      </ul>
    </li>
  )
}

function Subject({ finding, cell }: { readonly finding: Finding; readonly cell: GpuCell }) {
  const { run, rank, pid } = finding.subject
  if (run !== null)
    return (
      <>
        <a href={`#/training/${encodeURIComponent(run)}`}>{run}</a>
        {rank === null || rank === 0 ? '' : `, rank ${rank}`}
      </>
    )
  if (pid === null) return <>GPU {cell.info.value.label}</>
  const name = cell.processes.value.find((process) => process.pid === pid)?.info?.name
  return (
    <>
      {name ?? 'process'} {pid}
    </>
  )
}
