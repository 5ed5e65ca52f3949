/**
 * The data that flows through gpuwarden: plain objects, no behaviour, no imports.
 * Base units inside, named in the field (`Bytes`, `Watts`, `Ratio` 0–1, `at` in epoch milliseconds).
 */

/** null: the device cannot tell. 0 is always a real reading. */
export type Reading = number | null

export type Vendor = 'nvidia' | 'amd'

/** Where values come from: real hardware, a simulation, or a recording. */
export type Provenance = 'live' | 'simulated' | 'replay'

/** What does not change while the driver is loaded. Sent once, and again when it does change. */
export interface GpuInfo {
  /** Stable identity: NVIDIA UUID (`GPU-…`, `MIG-…`), AMD `unique_id`, else the PCI address. */
  readonly id: string
  /** Position among all GPUs of this host, in PCI/driver order; a MIG instance has its parent's. */
  readonly index: number
  /** What a person calls it: `0`, or `0:2` for MIG instance 2 of GPU 0. */
  readonly label: string
  readonly vendor: Vendor
  readonly provenance: Provenance
  readonly name: string | null
  /** `00000000:8D:00.0` (domain 8 hex digits, upper case). */
  readonly pciBusId: string | null
  /** `/dev/nvidiaN` minor number, or the DRM card number. */
  readonly minor: Reading
  readonly serial: string | null
  readonly driverVersion: string | null
  readonly cudaVersion: string | null
  readonly libraryVersion: string | null
  readonly architecture: string | null
  /** `9.0`: what CUDA code a card can run. */
  readonly computeCapability: string | null
  readonly vbiosVersion: string | null
  /** NVML's number: 0 shared, 1 one thread, 2 nobody, 3 one process. */
  readonly computeMode: Reading
  readonly memoryTotalBytes: Reading
  /** As set; what is in force can be less. */
  readonly powerLimitWatts: Reading
  /** In force: the least of all limits that hold at this moment. */
  readonly powerLimitEnforcedWatts: Reading
  /** As the card comes from the factory. */
  readonly powerLimitDefaultWatts: Reading
  readonly powerLimitMinWatts: Reading
  readonly powerLimitMaxWatts: Reading
  readonly smClockMaxHertz: Reading
  readonly memoryClockMaxHertz: Reading
  readonly temperatureSlowdownCelsius: Reading
  readonly temperatureShutdownCelsius: Reading
  readonly temperatureMaxCelsius: Reading
  readonly memoryTemperatureMaxCelsius: Reading
  readonly pcieGenerationMax: Reading
  readonly pcieWidthMax: Reading
  readonly migMode: 'enabled' | 'disabled' | null
  readonly mig: MigInstance | null
  /** Memory is the host's (GB10, Orin, APUs): running out of it is a host OOM. */
  readonly unifiedMemory: boolean
  /** Why a field of GpuSample or GpuInfo is null, by field name, where it is known. */
  readonly unavailable: Readonly<Record<string, string>>
}

export interface MigInstance {
  readonly parentId: string
  readonly gpuInstanceId: number
  readonly computeInstanceId: number | null
  /** `1g.10gb` */
  readonly profile: string | null
}

/**
 * `lost`: fell off the bus. `reset_required`: the driver wants a reset. `suspended`: asleep, left alone.
 * `error`: this GPU could not be read (see `stateReason`); its readings are null.
 */
export type GpuState = 'ok' | 'lost' | 'reset_required' | 'suspended' | 'error'

/** The numeric readings of a GPU at one moment. */
export interface GpuReadings {
  readonly utilizationRatio: Reading
  /** Share of time the memory controller was busy. */
  readonly memoryUtilizationRatio: Reading
  readonly memoryTotalBytes: Reading
  /** Without the driver's reserve where the device tells them apart. */
  readonly memoryUsedBytes: Reading
  readonly memoryFreeBytes: Reading
  readonly memoryReservedBytes: Reading
  readonly temperatureCelsius: Reading
  readonly memoryTemperatureCelsius: Reading
  readonly powerWatts: Reading
  /** Counter since driver load. */
  readonly energyJoules: Reading
  readonly fanRatio: Reading
  readonly graphicsClockHertz: Reading
  readonly smClockHertz: Reading
  readonly memoryClockHertz: Reading
  readonly videoClockHertz: Reading
  /** P-state: 0 is fastest, 15 slowest. */
  readonly performanceState: Reading
  /** NVML's bit mask of why clocks are where they are; other vendors map onto it. */
  readonly clockEventReasons: Reading
  readonly encoderRatio: Reading
  readonly decoderRatio: Reading
  readonly pcieGeneration: Reading
  readonly pcieWidth: Reading
  readonly pcieReplayCount: Reading
  readonly pcieTxBytesPerSecond: Reading
  readonly pcieRxBytesPerSecond: Reading
  readonly nvlinkTxBytesPerSecond: Reading
  readonly nvlinkRxBytesPerSecond: Reading
  readonly eccCorrectedVolatileCount: Reading
  readonly eccUncorrectedVolatileCount: Reading
  readonly eccCorrectedAggregateCount: Reading
  readonly eccUncorrectedAggregateCount: Reading
  readonly remappedCorrectableRows: Reading
  readonly remappedUncorrectableRows: Reading
  /** 1 when rows wait for a reset to be remapped. */
  readonly remapPending: Reading
  /** 1 when remapping failed: replace the card. */
  readonly remapFailure: Reading
  readonly retiredPagesSingleBit: Reading
  readonly retiredPagesDoubleBit: Reading
  readonly retiredPagesPending: Reading
  /** NVML's recovery action: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset. */
  readonly recoveryAction: Reading
  /** Joining the NVLink fabric behind NVSwitches, NVML's number: 1 not started, 2 in progress, 3 completed; null where there is no fabric. */
  readonly fabricState: Reading
  readonly powerViolationSeconds: Reading
  readonly thermalViolationSeconds: Reading
  readonly graphicsActiveRatio: Reading
  readonly smActiveRatio: Reading
  readonly smOccupancyRatio: Reading
  readonly tensorActiveRatio: Reading
  readonly dramActiveRatio: Reading
  readonly fp16ActiveRatio: Reading
  readonly fp32ActiveRatio: Reading
  readonly fp64ActiveRatio: Reading
}

export type GpuField = keyof GpuReadings

export interface GpuSample extends GpuReadings {
  readonly kind: 'gpu'
  readonly at: number
  /** GpuInfo.id */
  readonly gpu: string
  readonly state: GpuState
  readonly stateReason: string | null
  /** When the slow-tier readings (SLOW_FIELDS in record.ts) were taken; null when they never were. */
  readonly slowAt: Reading
  /** null: the process list could not be read; []: nobody uses this GPU. */
  readonly processes: readonly GpuProcess[] | null
}

export type GpuProcessType = 'compute' | 'graphics' | 'both'

/** One process on one GPU, as the driver reports it; identity is (pid, gpu). */
export interface GpuProcess {
  /** The driver's PID: of the host's namespace. */
  readonly pid: number
  readonly type: GpuProcessType
  readonly memoryUsedBytes: Reading
  readonly smRatio: Reading
  readonly memoryRatio: Reading
  readonly encoderRatio: Reading
  readonly decoderRatio: Reading
}

export interface HostSample {
  readonly kind: 'host'
  readonly at: number
  readonly hostname: string
  readonly cpuRatio: Reading
  readonly cpuCount: Reading
  readonly load1: Reading
  readonly load5: Reading
  readonly load15: Reading
  readonly memoryTotalBytes: Reading
  readonly memoryUsedBytes: Reading
  readonly memoryAvailableBytes: Reading
  readonly swapTotalBytes: Reading
  readonly swapUsedBytes: Reading
  /** The file system that holds the log folder. */
  readonly diskTotalBytes: Reading
  readonly diskFreeBytes: Reading
  /** Those GPU processes that could be looked up; see ProcessInfo. */
  readonly processes: readonly ProcessInfo[]
  /** Why processes cannot be looked up at all (another PID namespace), or null. */
  readonly processesReason: string | null
}

/** Who a process is and what it costs the host. A field is null when it is not ours to read. */
export interface ProcessInfo {
  readonly pid: number
  readonly parentPid: Reading
  /** With the PID this is the identity: a reused PID has another start time. */
  readonly startedAt: Reading
  readonly user: string | null
  readonly uid: Reading
  /** Short name of the program. */
  readonly name: string | null
  readonly executable: string | null
  readonly command: readonly string[] | null
  /** Kernel's state letter: R, S, D, Z, T … */
  readonly state: string | null
  /** 1 = one whole core. */
  readonly cpuRatio: Reading
  readonly residentBytes: Reading
  /** `docker:4f1c…`, `podman:…`, `containerd:…` */
  readonly container: string | null
  /** Kubernetes pod UID. */
  readonly pod: string | null
  readonly slurmJob: string | null
}

/** Something that happened at a moment, not a level. */
export interface GpuEvent {
  readonly kind: 'event'
  readonly at: number
  /** GpuInfo.id; null when the driver did not say which. */
  readonly gpu: string | null
  readonly event:
    | 'xid'
    | 'ecc_corrected'
    | 'ecc_uncorrected'
    | 'gpu_unavailable'
    | 'recovery_action'
    | 'lost'
    | 'recovered'
    | 'log_gap'
    | 'oom_kill'
  /** The XID, the recovery action, the PID that was killed …; null where the event has no number. */
  readonly code: Reading
  readonly message: string
  /** `nvml`, `kmsg`, `sysfs`, `sampler`. */
  readonly origin: string
}

/** What a source can measure. Training steps come from recordings here; live ones are posted to the agent. */
export type Sample = GpuSample | HostSample | GpuEvent | TrainingStep

/** A process on a GPU, joined with who it is. `info` null: unknown, never somebody else. */
export interface ProcessView extends GpuProcess {
  readonly gpu: string
  readonly info: ProcessInfo | null
}

export type SourceState = 'starting' | 'ok' | 'not_responding' | 'crashed' | 'failed' | 'ended'

/** How a source is doing: said by its supervisor, never inferred from values. */
export interface SourceHealth {
  readonly source: string
  readonly state: SourceState
  /** When it entered this state. */
  readonly since: number
  /** Plain words, with what to do; null when ok. */
  readonly message: string | null
  readonly provenance: Provenance
  readonly lastSampleAt: Reading
  readonly samples: number
  /** Ticks skipped because the one before was late. */
  readonly skippedTicks: number
  readonly restarts: number
  /** When the next start will be tried; null when running. */
  readonly nextStartAt: Reading
  readonly pid: Reading
  readonly intervalMs: number
  readonly deadlineMs: number
  /** Cost of the sampler process itself. */
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

/** A conclusion of a detector. `fingerprint` names the same trouble from its beginning to its end. */
export interface Finding {
  readonly fingerprint: string
  readonly detector: string
  /** Of the data that it was concluded from. */
  readonly provenance: Provenance
  readonly subject: FindingSubject
  readonly severity: Severity
  readonly state: 'active' | 'resolved'
  /** When this statement was made. */
  readonly at: number
  /** When the trouble began. */
  readonly since: number
  readonly message: string
  readonly evidence: Readonly<Record<string, number | string | boolean | null>>
  /** 0–1 */
  readonly confidence: number
  readonly advice: readonly string[]
  /** When it is expected to happen (OOM), with its interval. */
  readonly predictedAt: Reading
  readonly predictedEarliestAt: Reading
  readonly predictedLatestAt: Reading
  readonly riskLevel: RiskLevel | null
}

/** One step of a training run, as its SDK or a recording reports it. NaN and ±Infinity are real values here. */
export interface TrainingStep {
  readonly kind: 'step'
  readonly at: number
  readonly run: string
  readonly rank: number
  readonly step: number
  readonly epoch: Reading
  readonly loss: Reading
  readonly learningRate: Reading
  readonly gradientNorm: Reading
  readonly throughputPerSecond: Reading
  readonly stepSeconds: Reading
  readonly memoryAllocatedBytes: Reading
  readonly memoryReservedBytes: Reading
  readonly memoryActiveBytes: Reading
  readonly memoryInactiveSplitBytes: Reading
  readonly memoryPeakAllocatedBytes: Reading
  readonly memoryPeakReservedBytes: Reading
  readonly allocRetries: Reading
  readonly oomCount: Reading
  /** Data wait, forward, backward …, by name. */
  readonly phaseSeconds: Readonly<Record<string, number>> | null
  readonly custom: Readonly<Record<string, number>> | null
}

/** A training run; `gpus` and `pid` tie it to the machine's figures. */
export interface Run {
  readonly id: string
  readonly name: string
  readonly host: string | null
  readonly user: string | null
  readonly pid: Reading
  readonly gpus: readonly string[]
  readonly worldSize: Reading
  /** How many steps it is planned to have; null when nobody said. */
  readonly totalSteps: Reading
  readonly startedAt: number
  readonly endedAt: Reading
  readonly outcome: RunOutcome | null
  /** What is known of how it ended; null while it goes on. */
  readonly ending: RunEnding | null
}

export type RunOutcome = 'success' | 'oom' | 'nan' | 'killed' | 'failed'

/** The end of a run, as those who saw it describe it. */
export interface RunEnding {
  /** An exception's message, `exit code 1`, `ended by SIGKILL`. */
  readonly message: string | null
  /** Why memory ran out, in words; null when it did not, or nobody knows. */
  readonly cause: string | null
  /** The line of the program where it ended, or that holds what leaked: `train.py:77 in step`. */
  readonly place: string | null
  /** Somebody asked for it: Ctrl-C, SIGTERM, scancel. */
  readonly isAsked: boolean
  /** Nobody saw it: concluded from silence. */
  readonly isPresumed: boolean
}
