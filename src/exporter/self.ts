/** How gpuwarden itself is doing: always there, before the first sample too. */
import type { AgentState } from '../core/kinds.ts'
import type { Reading, SourceHealth } from '../core/model.ts'
import { Figures, Labels, NO_LABELS, sum } from './labels.ts'
import { type Metric, metric } from './metric.ts'
import { seconds } from './units.ts'

export interface SelfContext {
  readonly state: AgentState
  readonly trainingEvicted: number
  /** Runs that each detector has no room for. */
  readonly unfollowedRuns: Readonly<Record<string, number>>
  /** Milliseconds since this page was begun. */
  elapsedMs(): number
}

type OfSource = (source: SourceHealth, state: AgentState) => Reading

function perSource(type: 'gauge' | 'counter', name: string, unit: string, help: string, of: OfSource): Metric<SelfContext> {
  return metric(type, name, unit, help, ['source'], ({ state }, emit) => {
    for (const source of state.health()) emit(Labels.of({ source: source.source }), of(source, state))
  })
}

/** The agent, then each sampler process once, however many sources it reads. */
function processes(
  state: AgentState,
): readonly { readonly labels: Labels; readonly cpuSeconds: Reading; readonly residentBytes: Reading }[] {
  const samplers = new Map<string, SourceHealth[]>()
  for (const source of state.health()) {
    const key = source.pid === null ? source.source : String(source.pid)
    const group = samplers.get(key)
    if (group === undefined) samplers.set(key, [source])
    else group.push(source)
  }
  const agent = state.self()
  return [
    { labels: Labels.of({ process: 'agent' }), cpuSeconds: agent.cpuSeconds, residentBytes: agent.residentBytes },
    ...Array.from(samplers.values(), (group) => ({
      labels: Labels.of({ process: 'sampler', source: group.map((one) => one.source).join(',') }),
      cpuSeconds: group[0]?.cpuSeconds ?? null,
      residentBytes: group[0]?.residentBytes ?? null,
    })),
  ]
}

function findingCounts(state: AgentState): Figures {
  const counts = new Figures()
  for (const { detector, severity, state: findingState } of state.findings())
    if (findingState === 'active') counts.add(Labels.of({ detector, severity }), 1, sum)
  return counts
}

function isSimulated(state: AgentState): boolean {
  return (
    state.gpus().some(({ info }) => info.provenance === 'simulated') || state.health().some(({ provenance }) => provenance === 'simulated')
  )
}

export const SELF_METRICS: readonly Metric<SelfContext>[] = [
  perSource('gauge', 'gpuwarden_up', '', '1 if this source delivers samples, else 0.', (source) => (source.state === 'ok' ? 1 : 0)),
  perSource('gauge', 'gpuwarden_sample_age_seconds', 'seconds', 'How old the last sample of this source is.', ({ lastSampleAt }, state) =>
    lastSampleAt === null ? null : seconds(Math.max(0, state.now() - lastSampleAt)),
  ),
  perSource('counter', 'gpuwarden_samples_total', '', 'Samples that this source delivered.', (source) => source.samples),
  perSource(
    'counter',
    'gpuwarden_skipped_ticks_total',
    '',
    'Ticks skipped because the previous one was late.',
    (source) => source.skippedTicks,
  ),
  perSource('counter', 'gpuwarden_source_restarts_total', '', 'Restarts of the sampler of this source.', (source) => source.restarts),
  perSource('gauge', 'gpuwarden_source_read_seconds', 'seconds', 'How long the last read of this source took.', ({ readMs }) =>
    readMs === null ? null : Math.round(readMs * 1000) / 1e6,
  ),
  metric('counter', 'gpuwarden_dropped_total', '', 'Events dropped because a sink was too slow.', ['sink'], ({ state }, emit) => {
    for (const sink of state.sinks()) emit(Labels.of({ sink: sink.name }), sink.dropped)
  }),
  metric(
    'counter',
    'gpuwarden_process_cpu_seconds_total',
    'seconds',
    'CPU time used by gpuwarden.',
    ['process', 'source'],
    ({ state }, emit) => {
      for (const process of processes(state)) emit(process.labels, process.cpuSeconds)
    },
  ),
  metric(
    'gauge',
    'gpuwarden_process_resident_memory_bytes',
    'bytes',
    'Memory used by gpuwarden.',
    ['process', 'source'],
    ({ state }, emit) => {
      for (const process of processes(state)) emit(process.labels, process.residentBytes)
    },
  ),
  metric('gauge', 'gpuwarden_start_time_seconds', 'seconds', 'When gpuwarden was started, in Unix time.', [], ({ state }, emit) =>
    emit(NO_LABELS, state.self().startedAt / 1000),
  ),
  metric('gauge', 'gpuwarden_build_info', '', 'Version of gpuwarden; always 1.', ['version', 'node'], ({ state }, emit) =>
    emit(Labels.of({ version: state.self().version, node: process.version }), 1),
  ),
  metric('gauge', 'gpuwarden_simulated', '', '1 when GPUs are simulated: none of their values were measured.', [], ({ state }, emit) =>
    emit(NO_LABELS, isSimulated(state) ? 1 : 0),
  ),
  metric('gauge', 'gpuwarden_findings_active', '', 'Findings that hold now.', ['detector', 'severity'], ({ state }, emit) =>
    findingCounts(state).emit(emit),
  ),
  metric(
    'counter',
    'gpuwarden_training_evicted_total',
    '',
    'Training runs and ranks forgotten to stay within bounds.',
    [],
    (context, emit) => emit(NO_LABELS, context.trainingEvicted),
  ),
  metric(
    'gauge',
    'gpuwarden_detector_runs_not_followed',
    '',
    'Training runs that this detector does not follow: there are more than training.max_runs.',
    ['detector'],
    ({ unfollowedRuns }, emit) => {
      for (const [detector, runs] of Object.entries(unfollowedRuns)) emit(Labels.of({ detector }), runs)
    },
  ),
  metric('gauge', 'gpuwarden_scrape_duration_seconds', 'seconds', 'Time to render this page.', [], (context, emit) =>
    emit(NO_LABELS, Math.round(context.elapsedMs() * 1000) / 1e6),
  ),
]
