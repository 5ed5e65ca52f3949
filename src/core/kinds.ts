/** What the hub publishes, and the state that the rooms read. */
import type { AlertsEvent } from './alert-contract.ts'
import type {
  Finding,
  GpuEvent,
  GpuField,
  GpuInfo,
  GpuSample,
  HostField,
  HostSample,
  ProcessView,
  Provenance,
  Reading,
  Run,
  RunAbout,
  SourceHealth,
  TrainingStep,
} from './model.ts'
import type { PlaybackState } from './playback.ts'

/** One tick of one source, as the hub publishes it. */
export interface Tick {
  /** Increases by one for every tick the hub publishes. */
  readonly seq: number
  readonly at: number
  readonly source: string
  readonly provenance: Provenance
  readonly gpus: readonly GpuSample[]
  /** Processes of `gpus`, joined with who they are. */
  readonly processes: readonly ProcessView[]
  readonly host: HostSample | null
  readonly events: readonly GpuEvent[]
}

export type HubEvent =
  | { readonly type: 'devices'; readonly devices: readonly GpuInfo[] }
  | { readonly type: 'tick'; readonly tick: Tick }
  | { readonly type: 'health'; readonly health: readonly SourceHealth[] }
  | { readonly type: 'finding'; readonly finding: Finding }
  /** `about`: only of a simulated run, for the room that keeps runs. */
  | { readonly type: 'run'; readonly run: Run; readonly about?: RunAbout }
  | { readonly type: 'steps'; readonly steps: readonly TrainingStep[]; readonly provenance: Provenance }
  | { readonly type: 'playback'; readonly playback: PlaybackState }
  /** A recording is read from its beginning again: everything concluded from it is void. Not in the stream. */
  | { readonly type: 'restart' }

/** Since the start, and the last reason. */
export interface Dropped {
  readonly count: number
  readonly reason: string | null
}

/** Takes what the hub publishes. accept() returns at once; what does not fit its buffer is dropped and counted. */
export interface Sink {
  readonly name: string
  accept(event: HubEvent): void
  /** Only for sinks that may drop something. */
  dropped?(): Dropped
  /** Only for sinks with a timer, a file or a connection. */
  close?(): Promise<void>
}

/** What the live stream carries. */
export type StreamEvent = HubEvent | AlertsEvent

/** A GPU as a screen shows it. `live` false: the sample is old or the source is not responding; never show it as current. */
export interface GpuView {
  readonly info: GpuInfo
  readonly sample: GpuSample | null
  readonly ageMs: number | null
  readonly live: boolean
}

export interface HostView {
  readonly sample: HostSample
  readonly ageMs: number
  readonly live: boolean
}

export interface SinkHealth {
  readonly name: string
  readonly dropped: number
  readonly reason: string | null
}

/** What the agent itself uses. */
export interface SelfUsage {
  readonly version: string
  readonly startedAt: number
  readonly runId: string
  readonly pid: number
  readonly cpuSeconds: number
  readonly residentBytes: number
}

/** What the agent knows now: read by the exporter, the server and the screens; written by the hub only. */
export interface AgentState {
  readonly hostname: string
  now(): number
  gpus(): readonly GpuView[]
  processes(): readonly ProcessView[]
  host(): HostView | null
  health(): readonly SourceHealth[]
  sinks(): readonly SinkHealth[]
  self(): SelfUsage
  /** Latest XID of each GPU, by GpuInfo.id. */
  lastXid(): ReadonlyMap<string, GpuEvent>
  /** Recent events, oldest first; bounded. */
  events(): readonly GpuEvent[]
  findings(): readonly Finding[]
}

/** In place of a GPU's id: the readings of the host. */
export const HOST_SERIES = 'host'

export type SeriesField = GpuField | HostField

export interface HistoryQuery {
  /** GpuInfo.id, or HOST_SERIES. */
  readonly gpu: string
  readonly fields: readonly SeriesField[]
  readonly from: number
  readonly to: number
  /** null: the finest available for this range. */
  readonly stepMs: number | null
  /** At most so many points; without it, as many as an answer may have. */
  readonly points?: number
}

/** Columnar, as uPlot takes it: data[0] is time (epoch ms), then one column per field; null is a gap. */
export interface HistoryAnswer {
  readonly gpu: string
  readonly fields: readonly SeriesField[]
  /** 0: every sample. */
  readonly stepMs: number
  readonly data: readonly (readonly Reading[])[]
  /** Extremes inside each step, in the order of `fields`; null at full rate. */
  readonly min: readonly (readonly Reading[])[] | null
  readonly max: readonly (readonly Reading[])[] | null
}

/** What is in memory: the last samples, and minutes of the last hours. */
export interface History {
  query(query: HistoryQuery): HistoryAnswer
}

/** The same with what is on disk, as far as it goes back. */
export interface LongHistory {
  query(query: HistoryQuery): Promise<HistoryAnswer>
  /** Ids of GPUs with records, also of those that are gone. */
  devices(): Promise<readonly string[]>
}

/** Who had how much of a GPU's memory, over time. */
export interface ProcessHistoryAnswer {
  /** GpuInfo.id */
  readonly gpu: string
  readonly stepMs: number
  /** Beginning of each step, epoch milliseconds. */
  readonly at: readonly number[]
  readonly processes: readonly {
    readonly pid: number
    readonly startedAt: Reading
    readonly user: string | null
    readonly name: string | null
    readonly command: string | null
    /** The most in each step; null where the process was not there, or its memory is not known. */
    readonly memoryUsedBytes: readonly Reading[]
  }[]
}

/** Structured log: fields first, then the sentence; pino's shape. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(bindings: object): Log
}
