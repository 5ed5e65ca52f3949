/** The charts that several detectors share. */
import type { DetectorChart } from '../core/detector-contract.ts'

export const MEMORY_CHART: DetectorChart = {
  of: 'gpu',
  field: 'memoryUsedBytes',
  title: 'GPU memory in use',
  unit: 'bytes',
  limit: (_finding, info) => info?.memoryTotalBytes ?? null,
}

export const UTILIZATION_CHART: DetectorChart = { of: 'gpu', field: 'utilizationRatio', title: 'GPU utilization', unit: 'ratio' }

export const CLOCK_CHART: DetectorChart = {
  of: 'gpu',
  field: 'smClockHertz',
  title: 'SM clock',
  unit: 'hertz',
  limit: (_finding, info) => info?.smClockMaxHertz ?? null,
}

export const LOSS_CHART: DetectorChart = { of: 'steps', field: 'loss', title: 'Loss', unit: 'count' }

export const STEP_TIME_CHART: DetectorChart = { of: 'steps', field: 'stepSeconds', title: 'Step time', unit: 'seconds' }

/** A level from the evidence of the finding. */
export const evidenceLevel = (name: string): NonNullable<DetectorChart['limit']> => {
  return ({ evidence }) => {
    const level = evidence[name]
    return typeof level === 'number' ? level : null
  }
}
