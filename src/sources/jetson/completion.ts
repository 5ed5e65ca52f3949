/** What NVML leaves out of a Jetson's GPU, the files of the board tell: clocks, temperature, power, fan. */
import type { GpuField, GpuSample } from '../../core/model.ts'
import { findBoard } from './board.ts'
import { readBoard } from './board-reader.ts'

const FIELDS: readonly GpuField[] = [
  'utilizationRatio',
  'temperatureCelsius',
  'powerWatts',
  'modulePowerWatts',
  'fanRatio',
  'graphicsClockHertz',
  'smClockHertz',
]

/** null where there is no board: then nothing is to be completed. What is known stays. */
export function boardCompletion(root: string): ((sample: GpuSample) => GpuSample) | null {
  const board = findBoard(root)
  if (board === null) return null
  return (sample) => {
    const readings = sample.state === 'ok' ? readBoard(board, root) : null
    if (readings === null) return sample
    const missing = FIELDS.filter((field) => sample[field] === null && readings[field] !== null)
    return { ...sample, ...Object.fromEntries(missing.map((field) => [field, readings[field]])) }
  }
}
