/**
 * The data that flows through gpuwarden: plain objects in base units, named in the field (`Bytes`, `Watts`, `Ratio` 0–1, `at` in epoch ms).
 * Most fields are in the tables of fields/, from which records and schemas follow, too.
 */
import type { ColumnsOf, FactsOf } from './fields/field.ts'
import type { GPU_EVENTS, GPU_INFO, GPU_LINK, GPU_READINGS, GPU_STATES, MIG_INSTANCE, PROVENANCES } from './fields/gpu.ts'
import type { HOST_READINGS } from './fields/host.ts'
import type { GPU_PROCESS_TYPES, PROCESS_INFO, PROCESS_SHARES } from './fields/process.ts'
import type { STEP_FIGURES } from './fields/step.ts'
import type { RunModel } from './run-model.ts'

/** null: unknown. 0 is always a real reading. */
export type Reading = number | null

/** Where values come from: real hardware, a simulation, or a recording. */
export type Provenance = (typeof PROVENANCES)[number]

/** Static while the driver is loaded. Sent once, and again when it changes. */
export interface GpuInfo extends FactsOf<typeof GPU_INFO> {}

export interface MigInstance extends FactsOf<typeof MIG_INSTANCE> {}

export interface GpuLink extends FactsOf<typeof GPU_LINK> {}

/** `lost`: fell off the bus. `suspended`: asleep, not touched. `error`: could not be read (see `stateReason`). `no_driver`: on the PCI bus, but no driver answers for it. Readings are null in all of these. */
export type GpuState = (typeof GPU_STATES)[number]

/** The numeric readings of a GPU at one moment. */
export interface GpuReadings extends ColumnsOf<typeof GPU_READINGS> {}

export type GpuField = keyof GpuReadings

export interface GpuSample extends GpuReadings {
  readonly kind: 'gpu'
  readonly at: number
  /** GpuInfo.id */
  readonly gpu: string
  readonly state: GpuState
  readonly stateReason: string | null
  /** When the `slow` readings (fields/gpu.ts) were taken; null: never. */
  readonly slowAt: Reading
  /** null: the list could not be read; []: no process. */
  readonly processes: readonly GpuProcess[] | null
}

export type GpuProcessType = (typeof GPU_PROCESS_TYPES)[number]

/** One process on one GPU, as the driver reports it; identity is (pid, gpu). */
export interface GpuProcess extends ColumnsOf<typeof PROCESS_SHARES> {
  /** In the PID namespace of the host. */
  readonly pid: number
  readonly type: GpuProcessType
  readonly memoryUsedBytes: Reading
}

/** What a limit on memory (cgroup) allows, swap included, and what of it is used without files in the cache. */
export interface MemoryLimit {
  readonly usedBytes: number
  readonly limitBytes: number
}

/** Host memory of a process and its descendants. */
export interface TreeMemory {
  /** At the top of it. */
  readonly pid: number
  readonly run: string | null
  readonly processes: number
  /** Anonymous memory: without files in the cache, shared memory, and what workers got from their parent. */
  readonly bytes: number
  /** null: none below the machine's own memory. */
  readonly limit: MemoryLimit | null
}

export interface HostSample extends ColumnsOf<typeof HOST_READINGS> {
  readonly kind: 'host'
  readonly at: number
  readonly hostname: string
  /** GPU processes that could be looked up. */
  readonly processes: readonly ProcessInfo[]
  /** Why processes cannot be looked up at all (another PID namespace), or null. */
  readonly processesReason: string | null
  /** Of runs and of GPU processes; absent: they were not read this time. */
  readonly trees?: readonly TreeMemory[]
}

export type HostField = keyof ColumnsOf<typeof HOST_READINGS>

/** Who a process is and what it uses of the host. A field is null when it is not readable. */
export interface ProcessInfo extends ColumnsOf<typeof PROCESS_INFO> {
  readonly pid: number
  readonly command: readonly string[] | null
}

/** Something that happened at a moment, not a level. */
export interface GpuEvent {
  readonly kind: 'event'
  readonly at: number
  /** GpuInfo.id; null: the driver did not say. */
  readonly gpu: string | null
  readonly event: (typeof GPU_EVENTS)[number]
  /** XID, recovery action, killed PID, epoch milliseconds of a shutdown …; null: none. */
  readonly code: Reading
  readonly message: string
  /** `nvml`, `kmsg`, `sysfs`, `systemd`, `sampler`. */
  readonly origin: string
}

/** A run at its start or at its end. Simulations report it here; real runs are posted to the agent. */
export interface RunSample {
  readonly kind: 'run'
  readonly at: number
  readonly run: Run
  readonly about: RunAbout
}

/** What only the page of a run shows. */
export interface RunAbout {
  readonly command: string | null
  readonly framework: string | null
  /** Of the out-of-memory error that ended it, as an SDK sends it. */
  readonly report: Readonly<Record<string, unknown>> | null
}

/** What a source can measure. Runs and training steps come from simulations and recordings here; live ones are posted to the agent. */
export type Sample = GpuSample | HostSample | GpuEvent | TrainingStep | RunSample

/** A process on a GPU, joined with who it is. `info` null: unknown, never somebody else. */
export interface ProcessView extends GpuProcess {
  readonly gpu: string
  readonly info: ProcessInfo | null
}

export type SourceState = 'starting' | 'ok' | 'not_responding' | 'crashed' | 'failed' | 'ended'

/** Health of a source, set by its supervisor, never inferred from values. */
export interface SourceHealth {
  readonly source: string
  readonly state: SourceState
  /** When it entered this state. */
  readonly since: number
  /** What is wrong and what to do; null when ok. */
  readonly message: string | null
  readonly provenance: Provenance
  readonly lastSampleAt: Reading
  readonly samples: number
  /** Ticks skipped because the one before was late. */
  readonly skippedTicks: number
  readonly restarts: number
  /** Next start attempt; null when running. */
  readonly nextStartAt: Reading
  readonly pid: Reading
  readonly intervalMs: number
  readonly deadlineMs: number
  /** Of the sampler process. */
  readonly cpuSeconds: Reading
  readonly residentBytes: Reading
  /** How long the last read took. */
  readonly readMs: Reading
}

export type Severity = 'info' | 'warning' | 'critical'
export type RiskLevel = 'low' | 'medium' | 'high' | 'critical'

export interface FindingSubject {
  readonly host: string | null
  /** GpuInfo.id */
  readonly gpu: string | null
  readonly gpuIndex: number | null
  readonly pid: number | null
  readonly user: string | null
  readonly run: string | null
  readonly rank: number | null
}

/** A conclusion of a detector. `fingerprint` stays the same from start to end. */
export interface Finding {
  readonly fingerprint: string
  readonly detector: string
  /** Of its data. */
  readonly provenance: Provenance
  readonly subject: FindingSubject
  readonly severity: Severity
  readonly state: 'active' | 'resolved'
  /** When it was reported. */
  readonly at: number
  /** When it began. */
  readonly since: number
  readonly message: string
  readonly evidence: Readonly<Record<string, number | string | boolean | null>>
  /** 0–1 */
  readonly confidence: number
  readonly advice: readonly string[]
  /** Expected time (OOM), with its interval. */
  readonly predictedAt: Reading
  readonly predictedEarliestAt: Reading
  readonly predictedLatestAt: Reading
  readonly riskLevel: RiskLevel | null
}

/** The layer of a model that was the first to hold a value that is not finite. */
export interface NonFiniteLayer {
  readonly layer: string
  readonly part: 'weights' | 'activations' | 'gradients'
}

/** One step of a training run. NaN and ±Infinity are real values here. */
export interface TrainingStep extends ColumnsOf<typeof STEP_FIGURES> {
  readonly kind: 'step'
  readonly at: number
  readonly run: string
  readonly rank: number
  readonly step: number
  /** Data wait, forward, backward …, by name. */
  readonly phaseSeconds: Readonly<Record<string, number>> | null
  readonly custom: Readonly<Record<string, number>> | null
  /** Where the SDK looked for it; absent in nearly all steps. */
  readonly nonFinite?: NonFiniteLayer
}

/** `gpus` and `pid` connect a run to the readings of the machine. */
export interface Run {
  readonly id: string
  readonly name: string
  readonly provenance: Provenance
  readonly host: string | null
  readonly user: string | null
  readonly pid: Reading
  readonly gpus: readonly string[]
  readonly worldSize: Reading
  /** Planned steps; null: unknown. */
  readonly totalSteps: Reading
  readonly startedAt: number
  readonly endedAt: Reading
  readonly outcome: RunOutcome | null
  /** null while it runs. */
  readonly ending: RunEnding | null
  /** Lines that were recorded to leak, one for each rank and kind of memory, latest first; absent where none can be. */
  readonly leakLines?: readonly RunLeakLine[]
  /** Where its ranks are, as far as they said; absent: none did. */
  readonly places?: readonly RankPlace[]
  /** How it loads its data; absent or null: not known. */
  readonly loader?: RunLoader | null
  /** What the model needs to compute; absent or null: not known. */
  readonly model?: RunModel | null
  /** Who held it up when it last stood still; null or absent: nothing is known. */
  readonly hang?: RunHang | null
}

/** `gpu`: as the rank names it, an id or an index. */
export interface RankPlace {
  readonly rank: number
  readonly host: string | null
  readonly gpu: string | null
  readonly pid: Reading
}

export interface RunLoader {
  readonly workers: number
  readonly isPinned: boolean
  /** That the process may use. */
  readonly cpus: Reading
}

/** Memory that a line of a program made and kept. */
export interface RecordedLine {
  readonly file: string
  readonly line: Reading
  readonly function: string | null
  readonly bytes: number
  readonly blocks: Reading
  readonly bytesPerStep: Reading
  /** Of the growth in the same steps, 0 to 1. */
  readonly share: Reading
}

/**
 * gone: a process ended. behind: ranks are where the others are not. mismatch: they called different collectives. silent: ranks do not
 * answer. all_wait: all are in one collective. same_place, places: nobody waits for another rank.
 */
export type HangKind = 'gone' | 'behind' | 'mismatch' | 'silent' | 'all_wait' | 'same_place' | 'places' | 'unknown'

/** Who holds up a run that stands still. */
export interface HangVerdict {
  readonly kind: HangKind
  /** Without a capital and a full stop. */
  readonly sentence: string
  /** Ranks that hold the others up, in order. */
  readonly culprits: readonly number[]
  readonly waiting: readonly number[]
  /** Where the first culprit is, or what all wait in. */
  readonly place: string | null
  /** Nobody moves, and nobody writes, saves or compiles: waiting longer does not help. */
  readonly isStuck: boolean
}

/** A verdict, and when it was reached. */
export interface RunHang extends HangVerdict {
  readonly at: number
}

export interface RunLeakLine extends RecordedLine {
  readonly rank: number
  readonly at: number
  /** It keeps host memory; absent: GPU memory. */
  readonly isHost?: boolean
}

export type RunOutcome = 'success' | 'oom' | 'nan' | 'killed' | 'failed'

export interface RunEnding {
  /** An exception's message, `exit code 1`, `ended by SIGKILL`. */
  readonly message: string | null
  /** Why memory ran out; null: it did not, or unknown. */
  readonly cause: string | null
  /** Where it ended, or the line that holds the leaked memory: `train.py:77 in step`. */
  readonly place: string | null
  /** Stopped on purpose: Ctrl-C, SIGTERM, scancel. */
  readonly isAsked: boolean
  /** Not seen, concluded from silence. */
  readonly isPresumed: boolean
}
