/** `gpuwarden status`: memory and use now, as the running agent knows them with its findings, else by a look of its own. */
import type { Config, ConfigKey } from '../agent/config.ts'
import { exitOf, oneLook } from '../agent/one-look.ts'
import { AgentClient } from '../core/agent-client.ts'
import { EXIT } from '../core/failure.ts'
import { messageAt } from '../core/forecast-words.ts'
import { formatBytes, formatClock, formatPercent, formatWhole, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { GpuView } from '../core/kinds.ts'
import { openAlertsInWords } from '../core/known/alerts.ts'
import { compareFindings, findingsInWords } from '../core/known/findings.ts'
import { askPicture, type Picture } from '../core/known/picture.ts'
import type { ProcessView } from '../core/model.ts'
import { MemoryStatistics, memoryStatusReport } from '../report/memory-status.ts'
import { alignColumns } from './table.ts'
import { findLocalAgent } from './top-agent.ts'

/** Whoever names a source wants to see that one, and the agent may watch another. */
const OWN_LOOK: readonly ConfigKey[] = ['source', 'demo.gpus', 'demo.scenario', 'demo.seed', 'replay.speed', 'wake']

export async function status(config: Config, options: Record<string, unknown>): Promise<number> {
  const isOwnLook = OWN_LOOK.some((key) => config.origins[key].from === 'flag')
  const { address, reason } = isOwnLook ? { address: null, reason: null } : await findLocalAgent(config)
  if (address !== null) {
    const picture = await askPicture((path) => new AgentClient(address).get(path)).catch(() => null)
    if (picture !== null) return showAgent(config, options, address.url, picture)
  }
  if (!isOwnLook && options.json !== true)
    process.stderr.write(
      `gpuwarden: no agent answers on port ${config.values['server.port']}${reason === null ? '' : ` (${reason})`}: this is one look, without findings\n`,
    )
  return lookOnce(config, options)
}

function showAgent({ values }: Config, options: Record<string, unknown>, url: string, picture: Picture): number {
  const { at, findings, alerts } = picture
  const gpus = picture.gpus.filter(({ info }) => values.devices === null || values.devices.includes(info.index))
  const shown = new Set(gpus.map(({ info }) => info.id))
  const processes = picture.processes.filter(({ gpu }) => shown.has(gpu))
  const sorted = findings.toSorted(compareFindings)
  if (options.json === true) {
    const statistics = new MemoryStatistics()
    const samples = gpus.flatMap(({ sample }) => sample ?? [])
    statistics.accept({
      type: 'tick',
      tick: { seq: 0, at, source: 'agent', provenance: 'live', gpus: samples, processes, host: null, events: [] },
    })
    const report = memoryStatusReport(at, gpus, processes, statistics)
    process.stdout.write(`${JSON.stringify({ ...report, agent: url, findings: sorted }, null, 2)}\n`)
    return exitOf(gpus, picture.health)
  }
  const simulated = gpus.some(({ info }) => info.provenance === 'simulated') ? ['The GPUs are SIMULATED.'] : []
  const counts = alerts === null ? findingsInWords(findings) : `${findingsInWords(findings)}, ${openAlertsInWords(alerts.alerts)}`
  const rows = sorted.map((one) => [
    one.severity,
    formatClock(one.since, at),
    one.detector,
    `${one.provenance === 'live' ? '' : `${one.provenance.toUpperCase()} `}${printable(messageAt(one, at))}`,
  ])
  const lines = [`As the agent at ${url} sees it.`, ...simulated, table(gpus, processes), '', `${counts}${rows.length === 0 ? '' : ':'}`]
  process.stdout.write(`${[...lines, ...alignColumns(rows)].join('\n')}\n`)
  return exitOf(gpus, picture.health)
}

async function lookOnce(config: Config, options: Record<string, unknown>): Promise<number> {
  const statistics = new MemoryStatistics()
  const { text, faults, code } = await oneLook(
    config,
    ({ state }) => {
      const gpus = state.gpus()
      const report = () => JSON.stringify(memoryStatusReport(state.now(), gpus, state.processes(), statistics), null, 2)
      return {
        text: options.json === true ? report() : table(gpus, state.processes()),
        faults: state.health().flatMap(({ source, message }) => (message === null || isSaid(gpus, source) ? [] : message)),
        code: exitOf(gpus, state.health()),
      }
    },
    { onEvent: (event) => statistics.accept(event) },
  )
  process.stdout.write(`${text}\n`)
  for (const fault of faults) process.stderr.write(`gpuwarden: ${fault}\n`)
  if (code === EXIT.noDriver) process.stderr.write('gpuwarden: a driver cannot be used; "gpuwarden doctor" says more\n')
  if (code === EXIT.noSource) process.stderr.write('gpuwarden: no GPU was found on this machine; --source demo shows simulated ones\n')
  return code
}

function table(gpus: readonly GpuView[], processes: readonly ProcessView[]): string {
  if (gpus.length === 0) return 'No GPU to show.'
  const rows = [['GPU', 'NAME', 'STATE', 'UTIL', 'MEMORY', 'MEM%', 'TEMP', 'POWER'], ...gpus.map(gpuRow)]
  const lines = [...alignColumns(rows), ...reasonsOf(gpus)]
  if (processes.length > 0)
    lines.push(
      '',
      ...alignColumns([['GPU', 'PID', 'USER', 'TYPE', 'MEMORY', 'COMMAND'], ...processes.map((process) => processRow(process, gpus))]),
    )
  return lines.join('\n')
}

/** The table says it already. */
function isSaid(gpus: readonly GpuView[], source: string): boolean {
  return gpus.some(({ info, sample }) => info.vendor === source && sample?.state === 'no_driver')
}

/** Why cards without a driver have none, each reason once. */
function reasonsOf(gpus: readonly GpuView[]): string[] {
  const reasons = gpus.flatMap(({ sample }) => (sample?.state === 'no_driver' ? (sample.stateReason ?? []) : []))
  return reasons.length === 0 ? [] : ['', ...new Set(reasons)].map((reason) => printable(reason))
}

function gpuRow({ info, sample }: GpuView): string[] {
  const used = sample?.memoryUsedBytes ?? null
  const total = sample?.memoryTotalBytes ?? info.memoryTotalBytes
  return [
    info.label,
    printable(info.name ?? 'unknown GPU'),
    sample?.state.replaceAll('_', ' ') ?? 'no sample',
    formatPercent(sample?.utilizationRatio ?? null),
    `${formatBytes(used)} / ${formatBytes(total)}${info.unifiedMemory ? ' (host)' : ''}`,
    used === null || !total ? NOT_AVAILABLE : formatPercent(used / total),
    formatWhole(sample?.temperatureCelsius ?? null, '°C'),
    formatWhole(sample?.powerWatts ?? null, 'W'),
  ]
}

function processRow(process: ProcessView, gpus: readonly GpuView[]): string[] {
  const label = gpus.find((view) => view.info.id === process.gpu)?.info.label ?? '?'
  const command = printable(process.info?.command?.join(' ') ?? process.info?.name ?? NOT_AVAILABLE)
  return [
    label,
    String(process.pid),
    printable(process.info?.user ?? NOT_AVAILABLE),
    process.type,
    formatBytes(process.memoryUsedBytes),
    command.slice(0, 80),
  ]
}
