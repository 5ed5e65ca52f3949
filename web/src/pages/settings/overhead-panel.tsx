/** What watching costs, and whether all parts of the agent are ok. */
import { useRef } from 'preact/hooks'
import type { HealthAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { Badge, Empty, Fact, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { formatAge, formatBytes, formatDuration, formatPercent, NOT_AVAILABLE } from '../../words.ts'
import { costsOf, totalOf } from './overhead.ts'
import { roomFacts } from './room-facts.ts'

const EVERY_MS = 5000
/** Long enough for a sampler to have sent its counter more than once. */
const WINDOW_MS = 60_000

export function OverheadPanel() {
  const { answer, fault } = usePolled('health', (signal) => ask<HealthAnswer>('/api/v1/health', {}, { signal }), EVERY_MS).value
  const heard = useRef<readonly HealthAnswer[]>([])
  if (answer !== null && answer !== heard.current.at(-1))
    heard.current = [...heard.current, answer].filter(({ at }) => at >= answer.at - WINDOW_MS)
  if (answer === null)
    return (
      <Panel title="What watching costs">
        <Fault text={fault} />
        {fault === null && <Empty title="Asking the agent…" />}
      </Panel>
    )
  const [first = answer] = heard.current
  const before = first === answer ? null : first
  return (
    <>
      <Panel
        title="What watching costs"
        aside={
          <span class="small faint">
            {before === null ? 'measuring…' : `of one core, over the last ${formatAge(answer.at - before.at)}`}
          </span>
        }
      >
        <Fault text={fault} />
        <Costs before={before} now={answer} />
      </Panel>
      <Panel
        title="Health of the agent"
        aside={<Badge tone={answer.status === 'ok' ? 'good' : 'warning'}>{answer.status === 'ok' ? 'ok' : 'degraded'}</Badge>}
      >
        <Parts answer={answer} />
      </Panel>
    </>
  )
}

function Costs({ before, now }: { readonly before: HealthAnswer | null; readonly now: HealthAnswer }) {
  const costs = costsOf(before, now)
  const total = totalOf(costs)
  return (
    <>
      <div class="facts">
        <Fact label="CPU, total">{total.cpuRatio === null ? '…' : formatPercent(total.cpuRatio)}</Fact>
        <Fact label="Memory, total">{formatBytes(total.residentBytes)}</Fact>
        <Fact label="Running for">{formatAge(now.at - now.self.startedAt)}</Fact>
        <Fact label="Pages and other stream clients">
          {now.stream.clients} <small class="faint">of {now.stream.maxClients}</small>
        </Fact>
        <Fact label="Stream clients dropped">{now.stream.droppedClients}</Fact>
      </div>
      <ScrollBox label="Cost of each process">
        <table>
          <thead>
            <tr>
              <th>Process</th>
              <th class="number">PID</th>
              <th class="number">CPU now</th>
              <th class="number">CPU, mean</th>
              <th class="number">Memory</th>
            </tr>
          </thead>
          <tbody>
            {costs.map(({ name, pid, cpuRatio, meanCpuRatio, residentBytes }) => (
              <tr key={name}>
                <td>{name}</td>
                <td class="number mono">{pid ?? NOT_AVAILABLE}</td>
                <td class="number">{cpuRatio === null ? '…' : formatPercent(cpuRatio)}</td>
                <td class="number">{meanCpuRatio === null ? <span class="faint">–</span> : formatPercent(meanCpuRatio)}</td>
                <td class="number">{formatBytes(residentBytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </>
  )
}

function Parts({ answer }: { readonly answer: HealthAnswer }) {
  const dropped = answer.sinks.filter((sink) => sink.dropped > 0)
  return (
    <>
      <ScrollBox label="Sources">
        <table>
          <thead>
            <tr>
              <th>Source</th>
              <th>State</th>
              <th class="number">Samples</th>
              <th class="number">Ticks skipped</th>
              <th class="number">Restarts</th>
              <th class="number">Last read took</th>
              <th class="number">Every</th>
            </tr>
          </thead>
          <tbody>
            {answer.sources.map((source) => (
              <tr key={source.source}>
                <td>{source.source}</td>
                <td>
                  <Badge
                    tone={source.state === 'ok' ? 'good' : source.state === 'starting' || source.state === 'ended' ? 'muted' : 'critical'}
                  >
                    {source.state.replaceAll('_', ' ')}
                  </Badge>{' '}
                  <span class="small">{source.message}</span>
                </td>
                <td class="number">{source.samples}</td>
                <td class="number">{source.skippedTicks}</td>
                <td class="number">{source.restarts}</td>
                <td class="number">{source.readMs === null ? NOT_AVAILABLE : formatDuration(source.readMs)}</td>
                <td class="number">{source.intervalMs / 1000} s</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
      <p class="small">
        {dropped.length === 0
          ? 'Nothing was dropped on the way to the log, the history, the detectors, the alerts and the screens.'
          : dropped
              .map(({ name, dropped: number, reason }) => `${name} dropped ${number}${reason === null ? '' : ` (${reason})`}`)
              .join('; ')}
      </p>
      <div class="rooms">
        {Object.entries(answer.rooms).map(([name, room]) => (
          <Room key={name} name={name} room={room} at={answer.at} />
        ))}
      </div>
    </>
  )
}

const ROOM_NAMES: Readonly<Record<string, string>> = { store: 'Log files', alerts: 'Alerts', training: 'Training runs', push: 'Push' }

function Room({ name, room, at }: { readonly name: string; readonly room: unknown; readonly at: number }) {
  const facts = roomFacts(room, at)
  const channels = (room as { channels?: unknown } | null)?.channels
  return (
    <section class="room">
      <h3>{ROOM_NAMES[name] ?? name}</h3>
      <dl>
        {facts.map(({ label, value }) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd class="cut" title={value}>
              {value}
            </dd>
          </div>
        ))}
        {Array.isArray(channels) && channels.map((channel) => <ChannelLine key={channel.channel} channel={channel as Channel} />)}
      </dl>
    </section>
  )
}

interface Channel {
  readonly channel: string
  readonly results: Readonly<Record<string, number>>
  readonly depth: number
  readonly lastFault: string | null
}

function ChannelLine({ channel: { channel, results, depth, lastFault } }: { readonly channel: Channel }) {
  const said = `${results.delivered ?? 0} delivered, ${depth} waiting${lastFault === null ? '' : `; last fault: ${lastFault}`}`
  return (
    <div>
      <dt>channel {channel}</dt>
      <dd class={`cut ${lastFault === null ? '' : 'tone-warning'}`} title={said}>
        {said}
      </dd>
    </div>
  )
}
