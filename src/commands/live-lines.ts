/** A line per GPU, redrawn in place: what `monitor` shows on a terminal. */
import { formatBytes, formatClock, formatDuration, formatPercent, formatWhole, NOT_AVAILABLE, printable } from '../format.ts'
import type { AgentState, GpuView } from '../kinds.ts'
import type { Finding, SourceHealth } from '../model.ts'

const BAR_CELLS = 10
/** On a small screen the rest is summed up in one line. */
const MOST_TROUBLES = 6
const FALLBACK_ROWS = 24
const FALLBACK_COLUMNS = 80

export function liveLines(state: AgentState, columns: number, rows: number): string[] {
  const now = state.now()
  const troubles = state
    .health()
    .filter((source) => source.state !== 'ok' && source.state !== 'starting')
    .map((source) => troubleLine(source, now))
    .concat(state.findings().map(findingLine))
  const gpus = state.gpus()
  const room = Math.max(1, rows - Math.min(troubles.length, MOST_TROUBLES) - 2)
  const shown = gpus.slice(0, gpus.length > room ? room - 1 : room).map((view) => gpuLine(view, now))
  if (shown.length < gpus.length) shown.push(`… and ${gpus.length - shown.length} more GPUs (gpuwarden status shows all)`)
  if (gpus.length === 0 && troubles.length === 0) shown.push('waiting for the first sample …')
  return [...shown, ...troubles.slice(0, MOST_TROUBLES)].map((line) => line.slice(0, Math.max(1, columns - 1)))
}

function gpuLine({ info, sample, ageMs, live }: GpuView, now: number): string {
  const mark = info.provenance === 'simulated' ? ' SIMULATED' : info.provenance === 'replay' ? ' REPLAY' : ''
  const name = `GPU ${info.label.padEnd(3)}${printable(info.name ?? 'unknown')
    .replace(/^NVIDIA /, '')
    .slice(0, 22)
    .padEnd(22)}${mark}`
  if (sample === null) return `${name}  no sample yet`
  if (sample.state !== 'ok') return `${name}  ${sample.state.toUpperCase().replace('_', ' ')}: ${sample.stateReason ?? 'no reason given'}`
  if (!live) return `${name}  last sample ${formatDuration(ageMs ?? 0)} ago (${formatClock(sample.at, now)}), not live`
  const { memoryUsedBytes: used, memoryTotalBytes: total } = sample
  const share = used === null || !total ? null : used / total
  const processes = sample.processes === null ? NOT_AVAILABLE : String(sample.processes.length)
  return [
    name,
    `util ${formatPercent(sample.utilizationRatio).padStart(4)}`,
    `mem ${bar(share)} ${formatPercent(share).padStart(4)} ${formatBytes(used)}/${formatBytes(total)}`,
    formatWhole(sample.temperatureCelsius, '°C').padStart(5),
    formatWhole(sample.powerWatts, ' W').padStart(6),
    `proc ${processes}`,
  ].join('  ')
}

function bar(share: number | null): string {
  if (share === null) return '·'.repeat(BAR_CELLS)
  const filled = Math.min(BAR_CELLS, Math.max(0, Math.round(share * BAR_CELLS)))
  return '█'.repeat(filled) + '░'.repeat(BAR_CELLS - filled)
}

function findingLine({ severity, message, detector, provenance }: Finding): string {
  const mark = provenance === 'simulated' ? 'SIMULATED ' : ''
  return `${severity === 'info' ? '·' : '!'} ${mark}${severity} ${detector}: ${printable(message)}`
}

function troubleLine(source: SourceHealth, now: number): string {
  const since = formatClock(source.since, now)
  const next = source.nextStartAt === null ? '' : `; next try in ${formatDuration(source.nextStartAt - now)}`
  return `! ${source.source} ${source.state.replace('_', ' ')} since ${since}: ${printable(source.message ?? '')}${next}`
}

/** Draws over what it drew before, and only when something changed. */
export class LiveLines {
  readonly #state: AgentState
  readonly #out: NodeJS.WriteStream
  readonly #timer: NodeJS.Timeout
  #drawn: string[] = []

  constructor(state: AgentState, out: NodeJS.WriteStream, everyMs: number) {
    this.#state = state
    this.#out = out
    this.#timer = setInterval(() => this.draw(), everyMs)
    this.#timer.unref()
  }

  draw(): void {
    const lines = liveLines(
      this.#state,
      this.#out.columns || Number(process.env.COLUMNS) || FALLBACK_COLUMNS,
      this.#out.rows || Number(process.env.LINES) || FALLBACK_ROWS,
    )
    if (lines.length === this.#drawn.length && lines.every((line, index) => line === this.#drawn[index])) return
    const up = this.#drawn.length > 0 ? `\u001b[${this.#drawn.length}A` : ''
    this.#out.write(`${up}\r\u001b[J${lines.join('\n')}\n`)
    this.#drawn = lines
  }

  stop(): void {
    clearInterval(this.#timer)
    this.draw()
  }
}
