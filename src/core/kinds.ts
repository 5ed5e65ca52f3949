/** The contracts between rooms. A vendor, detector, channel or sink is one file that fulfils one of these. */
import type {
  Finding,
  FindingSubject,
  GpuEvent,
  GpuField,
  GpuInfo,
  GpuSample,
  HostSample,
  ProcessView,
  Provenance,
  Reading,
  Run,
  Sample,
  Severity,
  SourceHealth,
  TrainingStep,
} from './model.ts'

/** What a source may know of its surroundings. Everything it needs comes from here, so that tests can point it elsewhere. */
export interface SourceEnv {
  /** Prefix of `/sys`, `/proc`, `/dev`: `/` in life, a tree of files in tests. */
  readonly root: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly intervalMs: number
  /** Options of this source by name, already validated. */
  readonly options: SourceOptions
  readonly log: (level: 'debug' | 'info' | 'warn' | 'error', message: string, detail?: Readonly<Record<string, unknown>>) => void
  /** Epoch milliseconds; a test may steer it. */
  readonly now: () => number
}

export interface SourceOptions {
  /** NVML library file; GPUWARDEN_NVML. */
  readonly nvmlPath?: string
  /** Touch suspended cards too. */
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

/**
 * An opened source. `read` returns what was measured in this tick and may block only for as long as the device does:
 * the sampler process is replaced when it does not come back. It throws when the whole source failed;
 * a single GPU that fails is a GpuSample with a state.
 */
export interface Source {
  readonly provenance: Provenance
  /** Static facts. A new array object means that something changed. */
  devices(): readonly GpuInfo[]
  read(tick: SourceTick): readonly Sample[] | Promise<readonly Sample[]>
  /** Only sources that look up processes: whom to look up from now on. */
  watch?(pids: readonly number[]): void
  /** Only sources that end by themselves (replay): true when nothing more will come. */
  ended?(): boolean
  /** Only sources that set their own pace (replay): milliseconds until the next sample is due; null for the sampler's clock. */
  nextDelayMs?(): number | null
  close(): void | Promise<void>
}

export interface SourceTick {
  /** Epoch milliseconds of this tick; what samples carry. */
  readonly at: number
  /** Monotonic milliseconds, for rates. */
  readonly monotonicMs: number
  /** Counts every scheduled tick, skipped ones too. */
  readonly tick: number
}

/** open() → null: no such hardware here. It throws when the hardware is there but cannot be talked to; the message says what to do. */
export interface SourceKind {
  readonly name: string
  /** Lowest sensible interval; a source is not read more often than this. */
  readonly minIntervalMs?: number
  open(env: SourceEnv): Promise<Source | null>
}

/** One tick of one source, as the hub publishes it: joined, complete, in order. */
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
  | { readonly type: 'run'; readonly run: Run }
  | { readonly type: 'steps'; readonly steps: readonly TrainingStep[]; readonly provenance: Provenance }

/** How much was dropped since the start, and why the last time. */
export interface Dropped {
  readonly count: number
  readonly reason: string | null
}

/** Takes what the hub publishes. accept() returns at once; what does not fit its own buffer is dropped and counted. */
export interface Sink {
  readonly name: string
  accept(event: HubEvent): void
  /** Only sinks that may drop something. */
  dropped?(): Dropped
  /** Only sinks that have something to end: a timer, a file, a connection. */
  close?(): Promise<void>
}

/** What a detector is shown: everything in time order, one item at a time. */
export type DetectorInput =
  | { readonly type: 'device'; readonly device: GpuInfo }
  | { readonly type: 'gpu'; readonly sample: GpuSample; readonly processes: readonly ProcessView[] }
  | { readonly type: 'host'; readonly sample: HostSample }
  | { readonly type: 'event'; readonly event: GpuEvent }
  | { readonly type: 'step'; readonly step: TrainingStep }
  | { readonly type: 'run'; readonly run: Run }
  | { readonly type: 'health'; readonly health: SourceHealth; readonly at: number }
  /** What other detectors say. */
  | { readonly type: 'finding'; readonly finding: Finding }

/** Pure and streaming: time comes from the input, memory is bounded, the same input gives the same findings. */
export interface Detector {
  accept(input: DetectorInput): readonly Finding[]
  /** JSON-safe state, for a restart. */
  snapshot(): unknown
  restore(state: unknown): void
}

/** Figures of training steps that are kept for charts. */
export type StepField = 'loss' | 'gradientNorm' | 'stepSeconds'

/** What a finding is drawn with: a reading of its GPU, or a figure of the steps of its run, over time. */
export type DetectorChart = ({ readonly of: 'gpu'; readonly field: GpuField } | { readonly of: 'steps'; readonly field: StepField }) & {
  readonly title: string
  /** A word for base units; whoever draws it writes them as people do. */
  readonly unit: 'bytes' | 'ratio' | 'hertz' | 'celsius' | 'count' | 'seconds'
  /** A level worth a line; null or left out: none. */
  readonly limit?: (finding: Finding, info: GpuInfo | undefined) => Reading
}

/** What a detector declares about itself. The alerts, their charts and docs/detectors.md are made from it. */
export interface DetectorDeclaration {
  readonly name: string
  /** What its findings say: a sentence for people. */
  readonly about: string
  /** Those that its findings can have, the mildest first. */
  readonly severities: readonly Severity[]
  /** What it is shown; it sees nothing else. */
  readonly inputs: readonly DetectorInput['type'][]
  /** How long a finding has to hold before it becomes an alert; left out: at once. */
  readonly patienceSeconds?: number
  /** How severe the alert is where that differs from the finding. */
  readonly alertSeverity?: (finding: Finding) => Severity
  /** What its alerts draw: the first of these for which there is data; left out: nothing. */
  readonly charts?: readonly DetectorChart[]
  /** Its findings stay when their GPU is no longer listed. */
  readonly outlivesGpu?: true
}

export interface DetectorKind<Options = unknown> extends DetectorDeclaration {
  readonly defaults: Options
  create(options: Options): Detector
}

/** How a delivery went. `answer` is the server's own word, secrets masked; `retry` whether trying again can help. */
export type Delivery =
  | { readonly ok: true; readonly answer: string }
  | { readonly ok: false; readonly retry: boolean; readonly reason: string }

/** `late`: it fired and cleared while it could not be delivered. */
export type AlertStatus = 'firing' | 'repeat' | 'resolved' | 'late'

/** One trouble, as people are told of it. */
export interface Alert {
  readonly fingerprint: string
  readonly status: AlertStatus
  /** The latest statement of the detector. */
  readonly finding: Finding
  readonly firedAt: number
  readonly resolvedAt: Reading
  readonly gpuLabel: string | null
  readonly gpuName: string | null
  readonly process: ProcessView | null
  /** What the evidence looks like over time; null when there is nothing to draw. */
  readonly series: AlertSeries | null
}

export interface AlertSeries {
  readonly title: string
  readonly unit: string
  readonly at: readonly number[]
  readonly values: readonly Reading[]
  /** A level worth a line: the capacity, the slowdown temperature. */
  readonly limit: Reading
}

/** Who takes care of it, and until when nobody is reminded. */
export interface Acknowledgement {
  readonly at: number
  readonly until: number
  readonly by: string
  /** A trouble that gets worse than this is told of again. */
  readonly severity: Severity
}

/** An alert as a person looks at it. */
export interface AlertView {
  readonly fingerprint: string
  readonly state: 'pending' | 'firing' | 'resolved'
  readonly finding: Finding
  readonly firedAt: Reading
  readonly resolvedAt: Reading
  readonly flapping: boolean
  readonly simulated: boolean
  readonly acknowledged: Acknowledgement | null
  /** Why nobody is told of it at present. */
  readonly mutedBy: 'silence' | 'maintenance' | 'acknowledged' | 'simulated' | null
  /** Id of the silence that covers it. */
  readonly silence: string | null
  /** Channels that were told that it fires. */
  readonly told: readonly string[]
  /** Channels for which a message about it waits, or is on its way. */
  readonly waiting: readonly string[]
  /** What the GPU is called here; null when it is about none, or that one is not known. */
  readonly gpuLabel: string | null
  /** From before the agent was started, and not seen again since. */
  readonly unconfirmed: boolean
}

/** An alert that is over. */
export interface PastAlert {
  readonly fingerprint: string
  readonly detector: string
  readonly subject: FindingSubject
  readonly severity: Severity
  readonly message: string
  /** When it began: what its finding said. */
  readonly since: number
  readonly firedAt: number
  readonly resolvedAt: number
  readonly simulated: boolean
  readonly acknowledgedBy: string | null
}

/** What changed among the alerts since the event before. */
export interface AlertsEvent {
  readonly type: 'alerts'
  readonly at: number
  /** Those that are new or changed, as they are now. */
  readonly alerts: readonly AlertView[]
  /** Fingerprints of those that are no longer kept. */
  readonly gone: readonly string[]
  /** More changed at once than one event tells: the whole list has to be asked for. */
  readonly hasMore: boolean
  /** Silences were set, or ended. */
  readonly silencesChanged: boolean
}

/** Tells what changes among the alerts. Nothing is worked out while nobody follows. */
export interface AlertNews {
  /** From this moment on, until the function that it returns is called. */
  follow(listener: (event: AlertsEvent) => void): () => void
}

/** What the live stream carries. */
export type StreamEvent = HubEvent | AlertsEvent

/** What a channel delivers at once: the alerts of one host that belong together. */
export interface AlertMessage {
  /** The same over all tries: idempotency key, e-mail Message-ID. */
  readonly id: string
  /** The same for firing, repeat and resolved of the same trouble. */
  readonly threadId: string
  /** False: an earlier message of this thread was delivered on this channel. */
  readonly isFirst: boolean
  readonly kind: 'alerts' | 'test' | 'heartbeat'
  readonly host: string
  readonly at: number
  readonly severity: Severity
  readonly alerts: readonly Alert[]
  /** How many more were held back by the rate limit. */
  readonly suppressed: number
  /** How long delivery was held up; 0 at the first try. */
  readonly delayedMs: number
  /** Addresses of owners, besides the channel's own recipients. */
  readonly owners: readonly string[]
  readonly links: { readonly dashboard: string | null; readonly silence: string | null }
  /** True when any of it is simulated. */
  readonly simulated: boolean
}

/** Takes a message where it belongs. Dedupe, retry, silence and rate limits are stages before it. */
export interface Channel {
  readonly name: string
  deliver(message: AlertMessage, signal: AbortSignal): Promise<Delivery>
}

/** A GPU as a screen shows it. `live` false: the sample is old or the source is not responding; never show it as current. */
export interface GpuView {
  readonly info: GpuInfo
  readonly sample: GpuSample | null
  readonly ageMs: number | null
  readonly live: boolean
}

/** The same for the host. */
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

/** What the agent itself costs and is. */
export interface SelfUsage {
  readonly version: string
  readonly startedAt: number
  readonly runId: string
  readonly pid: number
  readonly cpuSeconds: number
  readonly residentBytes: number
}

/** What the agent knows at this moment: read by the exporter, the server and the screens; written by the hub alone. */
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
  /** Findings that are not resolved. */
  findings(): readonly Finding[]
}

export interface HistoryQuery {
  /** GpuInfo.id */
  readonly gpu: string
  readonly fields: readonly GpuField[]
  readonly from: number
  readonly to: number
  /** null: the finest that is there for this range. */
  readonly stepMs: number | null
}

/** Columnar, as uPlot takes it: data[0] is time (epoch ms), then one column per field; null is a gap. */
export interface HistoryAnswer {
  readonly gpu: string
  readonly fields: readonly GpuField[]
  /** 0: every sample as it was taken. */
  readonly stepMs: number
  readonly data: readonly (readonly Reading[])[]
  /** Extremes inside each step, in the order of `fields`; null at full rate. */
  readonly min: readonly (readonly Reading[])[] | null
  readonly max: readonly (readonly Reading[])[] | null
}

export interface History {
  query(query: HistoryQuery): HistoryAnswer
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
