/** A line per GPU, redrawn in place: what `monitor` shows on a terminal. */
import { formatAge, formatBytes, formatClock, formatPercent, formatWhole, NOT_AVAILABLE, printable, shortModel } from '../core/format.ts'
import type { AgentState, GpuView } from '../core/kinds.ts'
import type { Finding, SourceHealth } from '../core/model.ts'

const BAR_CELLS = 10
const MOST_NAME_CELLS = 22
const MEMORY_CELLS = '139.8 GiB/139.8 GiB'.length
/** On a small screen the rest is summed up in one line. */
const MOST_TROUBLES = 6
const FALLBACK_ROWS = 24
const FALLBACK_COLUMNS = 80

/** `faults`: what else is wrong with the agent, in words. */
export function liveLines(state: AgentState, columns: number, rows: number, faults: readonly string[] = []): string[] {
  const now = state.now()
  const troubles = state
    .health()
    .filter((source) => source.state !== 'ok' && source.state !== 'starting')
    .map((source) => troubleLine(source, now))
    .concat(
      faults.map((fault) => `! ${printable(fault)}`),
      state.findings().map(findingLine),
    )
  const gpus = state.gpus()
  const room = Math.max(1, rows - Math.min(troubles.length, MOST_TROUBLES) - 2)
  const width = Math.max(1, columns - 1)
  const nameCells = Math.max(0, ...gpus.map((view) => nameOf(view).length))
  const shown = gpus.slice(0, gpus.length > room ? room - 1 : room).map((view) => gpuLine(view, now, nameCells, width))
  if (shown.length < gpus.length) shown.push(`… and ${gpus.length - shown.length} more GPUs (gpuwarden status shows all)`)
  if (gpus.length === 0 && troubles.length === 0) shown.push(isWithoutGpu(state) ? 'no GPU to watch' : 'waiting for the first sample …')
  return [...shown, ...troubles.slice(0, MOST_TROUBLES)].map((line) => line.slice(0, width))
}

/** Only the host is read. */
function isWithoutGpu(state: AgentState): boolean {
  const health = state.health()
  return health.length > 0 && health.every(({ source, state: itsState }) => source === 'host' && itsState === 'ok')
}

function nameOf({ info }: GpuView): string {
  return printable(shortModel(info)).slice(0, MOST_NAME_CELLS)
}

function gpuLine(view: GpuView, now: number, nameCells: number, width: number): string {
  const { info, sample, ageMs, live } = view
  const mark = info.provenance === 'simulated' ? ' SIMULATED' : info.provenance === 'replay' ? ' REPLAY' : ''
  const name = `GPU ${info.label.padEnd(3)}${nameOf(view).padEnd(nameCells)}${mark}`
  if (sample === null) return `${name}  no sample yet`
  if (sample.state !== 'ok') return `${name}  ${sample.state.toUpperCase().replace('_', ' ')}: ${sample.stateReason ?? 'no reason given'}`
  if (!live) return `${name}  last sample ${formatAge(ageMs ?? 0)} ago (${formatClock(sample.at, now)}), not live`
  const { memoryUsedBytes: used, memoryTotalBytes: total } = sample
  const share = used === null || !total ? null : used / total
  const processes = sample.processes === null ? NOT_AVAILABLE : String(sample.processes.length)
  const fields = (memoryBar: string) => [
    name,
    `util ${formatPercent(sample.utilizationRatio).padStart(4)}`,
    `mem ${memoryBar}${formatPercent(share).padStart(4)} ${`${formatBytes(used)}/${formatBytes(total)}`.padEnd(MEMORY_CELLS)}`,
    formatWhole(sample.temperatureCelsius, '°C').padStart(6),
    formatWhole(sample.powerWatts, 'W').padStart(6),
    `proc ${processes}`,
  ]
  const whole = fields(`${bar(share)} `).join('  ')
  return whole.length <= width ? whole : fitting(fields(''), width)
}

/** As many fields as there is room for, each of them whole: half a number is another number. */
function fitting(fields: readonly string[], width: number): string {
  const shown = fields.slice(0, 1)
  let cells = shown[0]?.length ?? 0
  for (const field of fields.slice(1)) {
    cells += 2 + field.length
    if (cells > width) break
    shown.push(field)
  }
  return shown.join('  ')
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
  const next = source.nextStartAt === null ? '' : `; next try in ${formatAge(source.nextStartAt - now)}`
  return `! ${source.source} ${source.state.replace('_', ' ')} since ${since}: ${printable(source.message ?? '')}${next}`
}

/** Draws over what it drew before, and only when something changed. */
export class LiveLines {
  readonly #state: AgentState
  readonly #out: NodeJS.WriteStream
  readonly #timer: NodeJS.Timeout
  readonly #faults: () => readonly string[]
  #drawn: string[] = []

  constructor(state: AgentState, out: NodeJS.WriteStream, everyMs: number, faults: () => readonly string[]) {
    this.#state = state
    this.#out = out
    this.#faults = faults
    this.#timer = setInterval(() => this.draw(), everyMs)
    this.#timer.unref()
  }

  draw(): void {
    const lines = liveLines(
      this.#state,
      this.#out.columns || Number(process.env.COLUMNS) || FALLBACK_COLUMNS,
      this.#out.rows || Number(process.env.LINES) || FALLBACK_ROWS,
      this.#faults(),
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
