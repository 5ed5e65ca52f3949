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
}

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
  /** Severity of the alert where it differs from the finding. */
  readonly alertSeverity?: (finding: Finding) => Severity
  /** Its alerts show the first of these with data. */
  readonly charts?: readonly DetectorChart[]
  /** Its findings stay when their GPU is not listed anymore. */
  readonly outlivesGpu?: true
}

export interface DetectorKind<Options = unknown> extends DetectorDeclaration {
  readonly defaults: Options
  create(options: Options): Detector
}
