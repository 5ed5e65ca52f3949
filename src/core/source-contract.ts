/** What a source is: a vendor is one folder that fulfills it. */
import type { GpuInfo, Provenance, Sample } from './model.ts'
import type { PlaybackCommand, PlaybackState } from './playback.ts'

/** Everything a source needs from outside, so that tests can replace it. */
export interface SourceEnv {
  /** Prefix of `/sys`, `/proc`, `/dev`: `/`, or a tree of files in tests. */
  readonly root: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly intervalMs: number
  /** Already validated. */
  readonly options: SourceOptions
  readonly log: (level: 'debug' | 'info' | 'warn' | 'error', message: string, detail?: Readonly<Record<string, unknown>>) => void
  /** Epoch milliseconds. */
  readonly now: () => number
}

export interface SourceOptions {
  /** NVML library file; GPUWARDEN_NVML. */
  readonly nvmlPath?: string
  /** Read suspended cards, too. */
  readonly wake?: boolean
  readonly logDir?: string
  readonly demoGpus?: number
  readonly demoScenario?: string
  readonly seed?: number
  readonly replayPath?: string
  /** 1 = as recorded; Infinity = as fast as it goes. */
  readonly speed?: number
  /** Milliseconds between slow-tier reads. */
  readonly slowIntervalMs?: number
}

/** A process of a run on this host, known to be the one that said so. */
export interface RunProcessRef {
  readonly pid: number
  readonly run: string
}

/** An opened source. `read` may block only as long as the device does. It throws when the whole source failed; one failed GPU is a GpuSample with a state. */
export interface Source {
  readonly provenance: Provenance
  /** A new array object means a change. */
  devices(): readonly GpuInfo[]
  read(tick: SourceTick): readonly Sample[] | Promise<readonly Sample[]>
  /** Only for sources that look up processes: the PIDs on GPUs to look up from now on, and the processes of runs, which may use none. */
  watch?(pids: readonly number[], runs?: readonly RunProcessRef[]): void
  /** Only for sources that end (replay). */
  ended?(): boolean
  /** Only for sources with their own pace (replay): ms until the next sample; null: the sampler's clock. */
  nextDelayMs?(): number | null
  /** Only for sources that can be paused and moved (replay): they stay open after their end. */
  readonly playback?: Playback
  close(): void | Promise<void>
}

export interface Playback {
  state(): PlaybackState
  /** Takes effect with the next read. */
  command(command: PlaybackCommand): void
  /** How often it was read from its beginning again: what was concluded before is void. */
  readonly restarts: number
}

export interface SourceTick {
  /** Epoch milliseconds, as in the samples. */
  readonly at: number
  /** Monotonic milliseconds, for rates. */
  readonly monotonicMs: number
  /** Counts every scheduled tick, skipped ones included. */
  readonly tick: number
}

/** Why a driver cannot be used, for whoever has to decide what to say or do about it. */
export type DriverFaultKind =
  | 'no_driver'
  | 'wrong_version'
  | 'no_permission'
  | 'no_device_files'
  | 'no_library'
  | 'wrong_architecture'
  | 'no_gpu'
  | 'crashed'
  | 'not_responding'
  | 'other'

/** The hardware is there, but its driver cannot be used. */
export class DriverFault extends Error {
  readonly kind: DriverFaultKind

  constructor(kind: DriverFaultKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DriverFault'
    this.kind = kind
  }
}

/** open() → null: no such hardware. It throws a DriverFault when the hardware cannot be used; the message says what to do. */
export interface SourceKind {
  readonly name: string
  /** Never read more often. */
  readonly minIntervalMs?: number
  open(env: SourceEnv): Promise<Source | null>
}
