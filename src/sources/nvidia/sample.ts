/** Samples as this source makes them. */
import type { GpuProcess, GpuSample, GpuState } from '../../core/model.ts'
import { GPU_FIELDS, NO_READINGS } from '../../core/record.ts'
import type { Readings } from './device.ts'

export function emptyReadings(): Readings {
  const readings = {} as Readings
  for (const field of GPU_FIELDS) readings[field] = null
  return readings
}

export function sampleOf(at: number, gpu: string, readings: Readings, slowAt: number | null, processes: GpuProcess[] | null): GpuSample {
  return { kind: 'gpu', at, gpu, state: 'ok', stateReason: null, slowAt, processes, ...readings }
}

/** A GPU that could not or must not be read: nothing is known of it now. */
export function silentSample(at: number, gpu: string, state: GpuState, stateReason: string): GpuSample {
  return { kind: 'gpu', at, gpu, state, stateReason, slowAt: null, processes: null, ...NO_READINGS }
}
