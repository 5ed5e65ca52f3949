/** Units of an axis, and how numbers are written in them. */
import { formatBytes, formatDuration, formatFigure, formatPercent } from '../format.ts'

export type Unit =
  | 'bytes'
  | 'bytes_per_second'
  | 'ratio'
  | 'celsius'
  | 'watts'
  | 'hertz'
  | 'seconds'
  | 'count'
  /** Any other: written after the number. */
  | { readonly suffix: string }

const SPELLINGS: Readonly<Record<string, Unit>> = {
  bytes: 'bytes',
  byte: 'bytes',
  b: 'bytes',
  bytes_per_second: 'bytes_per_second',
  'bytes/s': 'bytes_per_second',
  'b/s': 'bytes_per_second',
  ratio: 'ratio',
  celsius: 'celsius',
  '°c': 'celsius',
  watts: 'watts',
  watt: 'watts',
  w: 'watts',
  hertz: 'hertz',
  hz: 'hertz',
  seconds: 'seconds',
  s: 'seconds',
  count: 'count',
  '': 'count',
}

/** An unknown word becomes a suffix. */
export function unitNamed(text: string): Unit {
  const word = text.trim()
  return SPELLINGS[word.toLowerCase()] ?? { suffix: word }
}

interface Scale {
  readonly factor: number
  readonly suffix: string
}

const BYTES: readonly Scale[] = [
  { factor: 1, suffix: ' B' },
  { factor: 1024, suffix: ' KiB' },
  { factor: 1024 ** 2, suffix: ' MiB' },
  { factor: 1024 ** 3, suffix: ' GiB' },
  { factor: 1024 ** 4, suffix: ' TiB' },
]
const HERTZ: readonly Scale[] = [
  { factor: 1, suffix: ' Hz' },
  { factor: 1e3, suffix: ' kHz' },
  { factor: 1e6, suffix: ' MHz' },
  { factor: 1e9, suffix: ' GHz' },
]
const COUNTS: readonly Scale[] = [
  { factor: 1, suffix: '' },
  { factor: 1e3, suffix: 'k' },
  { factor: 1e6, suffix: 'M' },
  { factor: 1e9, suffix: 'G' },
]

/** One factor for the whole axis. */
export function axisScale(unit: Unit, extent: number): Scale {
  if (typeof unit === 'object') return { factor: 1, suffix: unit.suffix === '' ? '' : ` ${unit.suffix}` }
  switch (unit) {
    case 'bytes':
      return largest(BYTES, extent)
    case 'bytes_per_second': {
      const scale = largest(BYTES, extent)
      return { factor: scale.factor, suffix: `${scale.suffix}/s` }
    }
    case 'hertz':
      return largest(HERTZ, extent)
    case 'count':
      return largest(COUNTS, extent / 10)
    case 'ratio':
      return { factor: 0.01, suffix: '%' }
    case 'celsius':
      return { factor: 1, suffix: ' °C' }
    case 'watts':
      return { factor: 1, suffix: ' W' }
    case 'seconds':
      return { factor: 1, suffix: ' s' }
  }
}

function largest(scales: readonly Scale[], extent: number): Scale {
  return scales.findLast((scale) => Math.abs(extent) >= scale.factor) ?? scales[0] ?? { factor: 1, suffix: '' }
}

/** `61.3 GiB`, `87%`, `84 °C`. */
export function formatValue(value: number, unit: Unit): string {
  switch (unit) {
    case 'bytes':
      return formatBytes(value)
    case 'bytes_per_second':
      return `${formatBytes(value)}/s`
    case 'ratio':
      return formatPercent(value)
    case 'seconds':
      return formatDuration(value * 1000)
    default: {
      const { factor, suffix } = axisScale(unit, value)
      return `${formatFigure(value / factor)}${suffix}`
    }
  }
}
