/**
 * Reads a log of `nvidia-smi --query-gpu=… --format=csv -l 1` as a recording. Units are in the header, in the values, in both or in neither;
 * an appended log repeats its header, perhaps with other columns; unknown is `[N/A]` or `[Not Supported]`.
 */
import type { Mutable } from '../fields/field.ts'
import type { GpuField, GpuSample, Reading } from '../model.ts'
import { fromColumn, SLOW_FIELDS } from '../record.ts'
import { type Delimiter, delimiterOf, parseClock, splitRow } from './csv.ts'
import { type GpuLine, replayGpuId, UNREAD } from './gpu.ts'
import { type Parsed, parseTimestamp } from './json.ts'

type Scale = Parameters<typeof fromColumn>[1]
type Meaning = { readonly field: GpuField; readonly scale: Scale } | 'timestamp' | 'index' | 'uuid' | 'name' | 'bus'

const reading = (field: GpuField, scale: Scale = 'same'): Meaning => ({ field, scale })

/** nvidia-smi's names, old ones included, without the unit. Where two mean the same, the later in a header counts. */
const COLUMNS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['timestamp', 'timestamp'],
  ['index', 'index'],
  ['uuid', 'uuid'],
  ['gpu_uuid', 'uuid'],
  ['name', 'name'],
  ['gpu_name', 'name'],
  ['pci.bus_id', 'bus'],
  ['gpu_bus_id', 'bus'],
  ['utilization.gpu', reading('utilizationRatio', 'percent')],
  ['utilization.memory', reading('memoryUtilizationRatio', 'percent')],
  ['utilization.encoder', reading('encoderRatio', 'percent')],
  ['utilization.decoder', reading('decoderRatio', 'percent')],
  ['memory.total', reading('memoryTotalBytes', 'mebibytes')],
  ['memory.used', reading('memoryUsedBytes', 'mebibytes')],
  ['memory.free', reading('memoryFreeBytes', 'mebibytes')],
  ['memory.reserved', reading('memoryReservedBytes', 'mebibytes')],
  ['temperature.gpu', reading('temperatureCelsius')],
  ['temperature.memory', reading('memoryTemperatureCelsius')],
  ['power.draw', reading('powerWatts')],
  ['power.draw.average', reading('powerWatts')],
  ['power.draw.instant', reading('powerWatts')],
  ['fan.speed', reading('fanRatio', 'percent')],
  ['clocks.gr', reading('graphicsClockHertz', 'megahertz')],
  ['clocks.current.graphics', reading('graphicsClockHertz', 'megahertz')],
  ['clocks.sm', reading('smClockHertz', 'megahertz')],
  ['clocks.current.sm', reading('smClockHertz', 'megahertz')],
  ['clocks.mem', reading('memoryClockHertz', 'megahertz')],
  ['clocks.current.memory', reading('memoryClockHertz', 'megahertz')],
  ['clocks.video', reading('videoClockHertz', 'megahertz')],
  ['clocks.current.video', reading('videoClockHertz', 'megahertz')],
  ['pstate', reading('performanceState')],
  ['clocks_throttle_reasons.active', reading('clockEventReasons')],
  ['clocks_event_reasons.active', reading('clockEventReasons')],
  ['pcie.link.gen.current', reading('pcieGeneration')],
  ['pcie.link.gen.gpucurrent', reading('pcieGeneration')],
  ['pcie.link.width.current', reading('pcieWidth')],
  ['ecc.errors.corrected.volatile.total', reading('eccCorrectedVolatileCount')],
  ['ecc.errors.uncorrected.volatile.total', reading('eccUncorrectedVolatileCount')],
  ['ecc.errors.corrected.aggregate.total', reading('eccCorrectedAggregateCount')],
  ['ecc.errors.uncorrected.aggregate.total', reading('eccUncorrectedAggregateCount')],
  ['retired_pages.single_bit_ecc.count', reading('retiredPagesSingleBit')],
  ['retired_pages.sbe', reading('retiredPagesSingleBit')],
  ['retired_pages.double_bit.count', reading('retiredPagesDoubleBit')],
  ['retired_pages.dbe', reading('retiredPagesDoubleBit')],
  ['retired_pages.pending', reading('retiredPagesPending')],
  ['remapped_rows.correctable', reading('remappedCorrectableRows')],
  ['remapped_rows.uncorrectable', reading('remappedUncorrectableRows')],
  ['remapped_rows.pending', reading('remapPending')],
  ['remapped_rows.failure', reading('remapFailure')],
])

/** Factors to the unit of the column. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['kib', 1 / 1024],
  ['gib', 1024],
  ['mw', 1 / 1000],
  ['ghz', 1000],
])

interface Header {
  readonly delimiter: Delimiter
  readonly meanings: readonly (Meaning | null)[]
  /** For numbers without a unit. */
  readonly factors: readonly number[]
}

/** null: not a header of nvidia-smi. */
export function readHeader(line: string): Header | null {
  const delimiter = delimiterOf(line)
  const cells = splitRow(line, delimiter)
  const meanings = cells.map((cell) => COLUMNS.get(cell.replace(/\s*\[[^\]]*\]$/, '').toLowerCase()) ?? null)
  if (!meanings.some((meaning) => typeof meaning === 'object' && meaning !== null)) return null
  const factors = cells.map((cell) => UNITS.get(/\[([^\]]*)\]$/.exec(cell)?.[1]?.toLowerCase() ?? '') ?? 1)
  return { delimiter, meanings, factors }
}

/** Why this is not a usable header; null: it is. */
export function headerFault(line: string): string | null {
  const header = readHeader(line)
  if (header === null) return 'its first line does not name columns of nvidia-smi --query-gpu (such as timestamp, index, memory.used)'
  return header.meanings.includes('timestamp') ? null : 'it has no timestamp column: add timestamp to --query-gpu'
}

/** Parses line by line; a header defines the lines after it. null: not a row. */
export function nvidiaSmiParser(): (line: string) => Parsed<GpuLine> | null {
  let header: Header | null = null
  return (line) => {
    if (line.trim() === '') return null
    const found = header === null || namesColumn(line, header.delimiter) ? readHeader(line) : null
    if (found !== null) {
      header = found
      return null
    }
    return header === null ? 'wrong_type' : readRow(splitRow(line, header.delimiter), header)
  }
}

/** Called for every line, so quick: is the first cell a column name? */
function namesColumn(line: string, delimiter: Delimiter): boolean {
  const first = line.slice(0, line.indexOf(delimiter) >>> 0)
  return /^[\s"]*[a-z_]/i.test(first) && COLUMNS.has(first.replace(/^[\s"]+|\s*\[[^\]]*\]|[\s"]+$/g, '').toLowerCase())
}

function readRow(cells: readonly string[], header: Header): Parsed<GpuLine> {
  if (cells.length !== header.meanings.length) return 'wrong_type'
  let at: number | null = null
  let index: number | null = null
  const texts: Partial<Record<'uuid' | 'name' | 'bus', string>> = {}
  const sample = { ...UNREAD }
  let isSlow = false
  for (let column = 0; column < cells.length; column++) {
    const meaning = header.meanings[column] ?? null
    const cell = cells[column] ?? ''
    if (meaning === null) continue
    if (meaning === 'timestamp') at = parseClock(cell) ?? parseTimestamp(cell)
    else if (meaning === 'index') index = plainNumber(cell)
    else if (typeof meaning === 'string') {
      if (!isUnknown(cell)) texts[meaning] = cell
    } else {
      const value = cellValue(cell, header.factors[column] ?? 1)
      if (value === undefined) return 'wrong_type'
      if (value === null) noteState(cell, sample)
      else sample[meaning.field] = fromColumn(value, meaning.scale)
      isSlow ||= SLOW_FIELDS.has(meaning.field)
    }
  }
  if (at === null) return 'no_timestamp'
  sample.at = at
  sample.gpu = texts.uuid ?? texts.bus ?? replayGpuId(index ?? 0)
  if (isSlow) sample.slowAt = at
  if (index === null && texts.uuid === undefined && texts.bus === undefined) index = 0
  return { kind: 'gpu_line', at, sample, index, name: texts.name ?? null, label: null, isSimulated: false, infos: [] }
}

function isUnknown(cell: string): boolean {
  return cell === '' || cell.startsWith('[') || /^(n\/a|err!|unknown error|not supported|-)$/i.test(cell)
}

function noteState(cell: string, sample: Mutable<GpuSample>): void {
  if (!/lost|requires reset/i.test(cell)) return
  sample.state = /lost/i.test(cell) ? 'lost' : 'reset_required'
  sample.stateReason = cell.replace(/^\[|\]$/g, '')
}

/** null: unknown. undefined: not a value. */
function cellValue(cell: string, factor: number): Reading | undefined {
  if (isUnknown(cell)) return null
  const match = /^([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-z%]*)$/i.exec(cell)
  if (match !== null) return Number(match[1]) * (match[2] === '' ? factor : (UNITS.get((match[2] ?? '').toLowerCase()) ?? 1))
  if (/^0x[0-9a-f]+$/i.test(cell)) return Number(cell)
  if (/^p\d+$/i.test(cell)) return Number(cell.slice(1))
  return /^(yes|no)$/i.test(cell) ? Number(/^y/i.test(cell)) : undefined
}

function plainNumber(cell: string): number | null {
  const value = Number(cell)
  return cell === '' || !Number.isInteger(value) || value < 0 ? null : value
}
