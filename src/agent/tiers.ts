/** The history on disk: written by a sink, looked after by a process of its own, and read for whoever asks. */
import { DiskStuck, logLane } from '../core/disk-lane.ts'
import { HOST_SERIES, type Log, type LongHistory, type Sink } from '../core/kinds.ts'
import type { MemoryHistory } from '../store/history.ts'
import type { StoreValues } from '../store/settings.ts'
import type { Store } from '../store/store.ts'
import { createLongHistory } from '../store/tiers/long-history.ts'
import { type RecorderHealth, TierRecorder } from '../store/tiers/recorder.ts'
import { Upkeep, type UpkeepHealth } from '../store/tiers/upkeep.ts'

const MEBIBYTE = 1024 * 1024

export interface TiersOptions {
  readonly logDir: string
  readonly values: StoreValues
  readonly store: Store
  readonly memory: MemoryHistory
  /** Ends when the memory has been filled from the logs. */
  readonly refilled: Promise<unknown>
  readonly log: Log
  readonly now: () => number
  readonly sinceJumpMs: () => number
}

export interface Tiers {
  readonly sink: Sink
  readonly history: LongHistory
  health(): RecorderHealth & UpkeepHealth
  close(): void
}

export function createTiers({ logDir, values, store, memory, refilled, log, now, sinceJumpMs }: TiersOptions): Tiers {
  const inCharge = () => store.inCharge()
  const recorder = new TierRecorder({ logDir, log, now, inCharge })
  const upkeep = new Upkeep({
    logDir,
    log,
    now,
    sinceJumpMs,
    monotonicMs: () => performance.now(),
    inCharge,
    keepFinestDays: values['history.keep_10s_days'],
    keepDays: values['history.keep_days'],
    keepBytes: values['history.keep_total_mb'] * MEBIBYTE,
    entry: new URL('./tiers-child.js', import.meta.url),
  })
  let isFilled = false
  void refilled.finally(() => {
    isFilled = true
  })
  const onDisk = createLongHistory({
    logDir,
    memory,
    isFilled: () => isFilled,
    onDamage: (path, error) => upkeep.noteDamage(path, error),
  })
  return {
    sink: recorder,
    history: {
      query: async (query) => {
        if (memory.reaches(query)) return memory.query(query)
        const gpu = query.gpu === HOST_SERIES ? recorder.hostDevice : query.gpu
        const answer = await logLane
          .patiently(() => onDisk.query({ ...query, gpu }))
          .catch((error: unknown) => {
            // Memory answers, whatever the disk does.
            if (error instanceof DiskStuck) return memory.query(query)
            throw error
          })
        return { ...answer, gpu: query.gpu }
      },
      devices: () => logLane.patiently(() => onDisk.devices()).catch(() => []),
    },
    health: () => ({ ...recorder.health(), ...upkeep.health() }),
    close: () => upkeep.close(),
  }
}
