import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gpuRecord, hostRecord, stepRecord } from '../core/record.ts'
import type { GpuData, ScreenData } from './screen-data.ts'

export function metricsFile(data: ScreenData): object {
  return {
    saved_at: new Date(data.now).toISOString(),
    figures_of: new Date(data.at).toISOString(),
    hostname: data.hostname,
    provenance: data.provenance,
    gpus: data.gpus.flatMap(({ view: { info, sample, live } }) =>
      sample === null
        ? []
        : [
            {
              ...gpuRecord(
                sample,
                info,
                data.processes.filter((process) => process.gpu === info.id),
              ),
              live,
            },
          ],
    ),
    host: data.host === null ? null : hostRecord(data.host.sample, data.provenance),
    training: data.runs.map((run) => stepRecord(run.step, data.provenance)),
    findings: data.findings,
    history: data.gpus.map(historyOf),
  }
}

/** `gpu_metrics_YYYYMMDD_HHMMSS.json`; never over a file that is there. Gives the path. */
export function saveMetrics(data: ScreenData, folder: string): string {
  const stamp = new Date(data.now).toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15)
  for (let copy = 0; ; copy++) {
    const path = resolve(folder, `gpu_metrics_${stamp}${copy === 0 ? '' : `_${copy}`}.json`)
    try {
      writeFileSync(path, `${JSON.stringify(metricsFile(data), null, 2)}\n`, { flag: 'wx' })
      return path
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || copy > 99) throw error
    }
  }
}

/** Columns of equal steps, the last of them now; null is a gap. */
function historyOf({ view, stepMs, utilization, memory }: GpuData): object {
  const column = (values: ArrayLike<number>) =>
    Array.from(values, (value) => (Number.isFinite(value) ? Math.round(value * 1e4) / 100 : null))
  return { gpu: view.info.id, step_seconds: stepMs / 1000, utilization_percent: column(utilization), memory_percent: column(memory) }
}
