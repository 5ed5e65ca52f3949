/** `gpuwarden detect --csv FILE --as memory`: what the agent would say of a column of memory in use. */
import { EXIT, Failure } from '../core/failure.ts'
import type { Finding, GpuSample } from '../core/model.ts'
import { NO_READINGS } from '../core/record.ts'
import { createEngine, type EngineOptions } from '../detectors/engine.ts'
import { detectors } from '../detectors/index.ts'
import { readColumn } from './csv-column.ts'

/** The detectors that judge memory by itself. */
const OF_MEMORY = new Set(['leak', 'oom', 'memory_pressure'])
const GPU = 'csv'
const UNITS: Readonly<Record<string, number>> = {
  b: 1,
  bytes: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1000,
  mb: 1e6,
  gb: 1e9,
}

export interface MemoryColumn {
  readonly path: string
  readonly time: string
  readonly value: string
  readonly capacityBytes: number
  readonly options: NonNullable<EngineOptions['options']>
  readonly onFindings: (findings: readonly Finding[]) => void
}

export interface MemoryRows {
  readonly rows: number
  readonly withoutValue: number
  readonly withoutTime: number
}

/** Rows without a time or a number are left out and counted. */
export async function detectMemory({ path, time, value, capacityBytes, options, onFindings }: MemoryColumn): Promise<MemoryRows> {
  const kinds = detectors.filter(({ name }) => OF_MEMORY.has(name))
  const engine = createEngine({ kinds, options, disabled: [], hostname: 'csv', onFailure: rethrow })
  let [seq, rows, withoutValue, withoutTime] = [0, 0, 0, 0]
  for await (const row of readColumn(path, time, value)) {
    rows++
    if (row.at === null) withoutTime++
    if (row.value === null) withoutValue++
    if (row.at === null || row.value === null) continue
    const sample: GpuSample = {
      ...NO_READINGS,
      kind: 'gpu',
      at: row.at,
      gpu: GPU,
      state: 'ok',
      stateReason: null,
      slowAt: null,
      processes: null,
      memoryTotalBytes: capacityBytes,
      memoryUsedBytes: row.value * scaleOf(row.unit),
    }
    const tick = {
      seq: ++seq,
      at: row.at,
      source: 'csv',
      provenance: 'replay',
      gpus: [sample],
      processes: [],
      host: null,
      events: [],
    } as const
    const findings = engine.accept({ type: 'tick', tick })
    if (findings.length > 0) onFindings(findings)
  }
  return { rows, withoutValue, withoutTime }
}

/** `80GiB`, `80 GiB`, or bytes. */
export function readCapacity(text: string): number {
  const match = /^([\d.]+)\s*([a-z]*)$/i.exec(text.trim())
  const bytes = Number(match?.[1]) * (UNITS[(match?.[2] ?? '').toLowerCase() || 'b'] ?? Number.NaN)
  if (Number.isFinite(bytes) && bytes > 0) return bytes
  throw new Failure(`--capacity: expected bytes, or a size such as 80GiB; got "${text}"`, { exitCode: EXIT.usage })
}

function scaleOf(unit: string | null): number {
  const scale = UNITS[(unit ?? 'b').toLowerCase()]
  if (scale !== undefined) return scale
  throw new Failure(`the column is in "${unit}": expected memory in bytes, KiB, MiB or GiB`, { exitCode: EXIT.usage })
}

function rethrow({ error }: { readonly error: unknown }): never {
  throw error
}
