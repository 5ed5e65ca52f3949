/** What the tests of the history on disk share. */
import { join } from 'node:path'
import type { HistoryAnswer, HistoryQuery, SeriesField } from '../../core/kinds.ts'
import type { GpuReadings, GpuSample, HostSample } from '../../core/model.ts'
import { GPU, gpuSample, recordedLog, tickEvent } from '../sink.contract.ts'
import { createLongHistory } from './long-history.ts'
import { TierRecorder } from './recorder.ts'
import { FOLDER } from './tier-table.ts'

export const DAY = 86_400_000
/** Midnight, UTC. */
export const FIRST_DAY = Date.UTC(2026, 2, 10)

export interface Taken {
  readonly at: number
  readonly readings?: Partial<GpuReadings>
  readonly gpu?: string
  readonly host?: HostSample
}

/** One run of an agent, from its start to its end. */
export async function run(logDir: string, taken: Iterable<Taken>): Promise<void> {
  const recorder = new TierRecorder({ logDir, log: recordedLog(), now: () => FIRST_DAY, inCharge: () => true })
  for (const { at, readings = {}, gpu = GPU, host } of taken) {
    const gpus: GpuSample[] = host ? [] : [gpuSample(at, readings, gpu)]
    recorder.accept(tickEvent(at, gpus, host ?? null))
  }
  await recorder.close()
}

/** Power that says which second it is of: least, mean and most of any span are known. */
export function* seconds(from: number, count: number, everyMs = 1000): Generator<Taken> {
  for (let index = 0; index < count; index++) yield { at: from + index * everyMs, readings: { powerWatts: index % 600 } }
}

export interface Asked extends Partial<HistoryQuery> {
  readonly fields?: readonly SeriesField[]
}

export function ask(logDir: string, query: Asked, damaged: string[] = []): Promise<HistoryAnswer> {
  const history = createLongHistory({ logDir, memory: null, isFilled: () => false, onDamage: (path) => damaged.push(path) })
  return history.query({ gpu: GPU, fields: ['powerWatts'], from: FIRST_DAY, to: FIRST_DAY + DAY - 1, stepMs: null, ...query })
}

/** Time, least, mean and most of each step of the first field. */
export function table({ data: [times = [], means = []], min, max }: HistoryAnswer) {
  return times.map((at, index) => [at, min?.[0]?.[index] ?? null, means[index] ?? null, max?.[0]?.[index] ?? null] as const)
}

export const rootOf = (logDir: string) => join(logDir, FOLDER)
