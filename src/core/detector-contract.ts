/** What a detector is: one file that fulfills it. */
import type {
  Finding,
  GpuEvent,
  GpuField,
  GpuInfo,
  GpuSample,
  HostSample,
  ProcessView,
  Reading,
  Run,
  Severity,
  SourceHealth,
  TrainingStep,
} from './model.ts'

/** The input of a detector, in time order. */
export type DetectorInput =
  | { readonly type: 'device'; readonly device: GpuInfo }
  | { readonly type: 'gpu'; readonly sample: GpuSample; readonly processes: readonly ProcessView[] }
  | { readonly type: 'host'; readonly sample: HostSample }
  | { readonly type: 'event'; readonly event: GpuEvent }
  | { readonly type: 'step'; readonly step: TrainingStep }
  | { readonly type: 'run'; readonly run: Run }
  | { readonly type: 'health'; readonly health: SourceHealth; readonly at: number }
  /** Of other detectors. */
  | { readonly type: 'finding'; readonly finding: Finding }

/** Pure and streaming: time comes from the input, memory is bounded, the same input gives the same findings. */
export interface Detector {
  accept(input: DetectorInput): readonly Finding[]
  /** JSON-safe state, for a restart. */
  snapshot(): unknown
  restore(state: unknown): void
  /** Runs that it does not follow although they are alive: there are more than it has room for. Absent: it follows no runs. */
  unfollowed?(): Iterable<string>
}

/** How many runs detectors follow where nothing else is set. */
export const MOST_RUNS = 256
/** Room for ranks, per run: a detector of ranks follows this many times the runs. */
export const RANKS_PER_RUN = 8

/** Values of training steps kept for charts. */
export type StepField = 'loss' | 'gradientNorm' | 'stepSeconds'

/** The chart of a finding: a reading of its GPU, or a value of the steps of its run. */
export type DetectorChart = ({ readonly of: 'gpu'; readonly field: GpuField } | { readonly of: 'steps'; readonly field: StepField }) & {
  readonly title: string
  /** Base unit. */
  readonly unit: 'bytes' | 'ratio' | 'hertz' | 'celsius' | 'count' | 'seconds'
  /** A horizontal line; null or absent: none. */
  readonly limit?: (finding: Finding, info: GpuInfo | undefined) => Reading
}

/** Alerts, their charts and docs/detectors.md are made from it. */
export interface DetectorDeclaration {
  readonly name: string
  /** One sentence for people. */
  readonly about: string
  /** Mildest first. */
  readonly severities: readonly Severity[]
  /** It sees nothing else. */
  readonly inputs: readonly DetectorInput['type'][]
  /** How long a finding must last before it becomes an alert; 0 by default. */
  readonly patienceSeconds?: number
  /** Without its state, it finds a problem that lasts again within this time; absent: that may take much longer. */
  readonly findsAgainSeconds?: number
  /** Severity of the alert where it differs from the finding. */
  readonly alertSeverity?: (finding: Finding) => Severity
  /** Its alerts show the first of these with data. */
  readonly charts?: readonly DetectorChart[]
  /** Its findings stay when their GPU is not listed anymore. */
  readonly outlivesGpu?: true
}

export interface DetectorKind<Options = unknown> extends DetectorDeclaration {
  readonly defaults: Options
  /** `maxRuns`: how many runs it follows at once. */
  create(options: Options, maxRuns?: number): Detector
}
