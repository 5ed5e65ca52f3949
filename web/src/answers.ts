import type { AlertView } from '../../src/core/alert-contract.ts'
import type { Hyperparameters } from '../../src/core/hyperparameters.ts'
import type { HistoryAnswer, SelfUsage, SinkHealth } from '../../src/core/kinds.ts'
import type { DiffPicture, SnapshotPicture } from '../../src/core/memory/snapshot-picture.ts'
import type { Finding, GpuEvent, Reading, Run, SourceHealth } from '../../src/core/model.ts'
import type { PlaybackMark, PlaybackState } from '../../src/core/playback.ts'
import type { PhaseShare } from '../../src/core/step-phases.ts'

export { numberOf } from '../../src/core/known/revive.ts'
export type { AlertView, HistoryAnswer }

export interface HealthAnswer {
  readonly status: 'ok' | 'degraded'
  readonly at: number
  readonly hostname: string
  readonly sources: readonly (SourceHealth & { readonly ageMs: Reading })[]
  readonly sinks: readonly SinkHealth[]
  readonly self: SelfUsage
  readonly stream: { readonly clients: number; readonly maxClients: number; readonly droppedClients: number }
  readonly rooms: Readonly<Record<string, unknown>>
}

export interface ReplayAnswer extends PlaybackState {
  readonly firstAt: Reading
  /** null until the recording was read to its end. */
  readonly lastAt: Reading
  readonly marks: readonly PlaybackMark[]
  /** Why it cannot go back; null: it can. */
  readonly forwardOnly: string | null
}

export interface FindingsAnswer {
  readonly at: number
  readonly findings: readonly Finding[]
}

export interface EventsAnswer {
  readonly at: number
  readonly events: readonly GpuEvent[]
}

/** What a list of runs shows. Figures that are not finite come as text ("NaN"): see numberOf(). */
export interface RunListed extends Run {
  readonly command?: string | null
  readonly gitCommit?: string | null
  readonly framework?: string | null
  readonly hasReport?: boolean
  readonly training?: Readonly<Record<string, unknown>>
}

export interface RunsAnswer {
  readonly at: number
  readonly runs: readonly RunListed[]
}

export interface RunAnswer extends RunListed {
  readonly message?: string | null
  /** The end was not reported: its process is gone, or it was silent for too long. */
  readonly endIsPresumed?: boolean
  readonly correlationId?: string | null
  readonly hyperparameters?: Hyperparameters
  /** What the SDK wrote down when memory ran out. */
  readonly report?: Readonly<Record<string, unknown>> | null
  /** How many layers of its model were looked at. */
  readonly layers?: number
  /** null: logs are off, so there is nothing to report from. */
  readonly logDir?: string | null
}

export interface StepsAnswer {
  readonly id: string
  readonly rank?: number | null
  readonly ranks?: readonly number[]
  readonly available?: readonly string[]
  readonly fields: readonly string[]
  readonly stride: number
  /** step, at (epoch ms), then the fields. */
  readonly data: readonly (readonly unknown[])[]
}

export interface RankRow {
  readonly rank: number
  readonly pid: Reading
  readonly lastStep: number
  readonly lastAt: number
  readonly steps: number
  readonly meanStepSeconds: Reading
  readonly lastStepSeconds: Reading
  readonly recentStepSeconds?: Reading
  readonly memoryAllocatedBytes: Reading
  readonly pipelineStage?: Reading
  readonly phaseShares?: readonly PhaseShare[]
  readonly behindSteps: number
  readonly relativeSpeed: Reading
}

export interface RanksAnswer {
  readonly id: string
  readonly at: number
  readonly ranks: readonly RankRow[]
}

export interface ConfigAnswer {
  readonly file: string | null
  readonly warnings: readonly string[]
  readonly settings: readonly {
    readonly key: string
    readonly value: unknown
    readonly from: string
    readonly variable: string
    readonly help: string
  }[]
}

export interface AccuracyAnswer {
  readonly days: number
  /** false: the agent keeps no log. */
  readonly isLogged: boolean
  readonly rows: readonly {
    readonly detector: string
    readonly forecasts: number
    readonly cameTrue: number
    readonly didNotHappen: number
    readonly medianLeadSeconds: Reading
    readonly medianErrorSeconds: Reading
  }[]
  readonly outOfMemory: number
  readonly withoutWarning: number
}

export interface DoctorAnswer {
  readonly at: number
  readonly tookMs: number
  readonly checks: readonly {
    readonly name: string
    readonly state: 'ok' | 'advice' | 'missing'
    readonly message: string
    readonly fix: string | null
  }[]
}

export interface GrafanaAnswer {
  readonly files: readonly { readonly name: string; readonly title: string; readonly url: string }[]
}

export interface ListedSnapshot {
  readonly id: string
  readonly name: string
  readonly origin: 'run' | 'upload'
  readonly run: string | null
  readonly runName: string | null
  readonly rank: number | null
  readonly at: number
  readonly kind: 'out of memory' | 'asked for' | 'uploaded'
  readonly bytes: Reading
  readonly receivedBytes: Reading
  /** Why it cannot be shown here. */
  readonly notOpened: string | null
}

export interface SnapshotsAnswer {
  readonly snapshots: readonly ListedSnapshot[]
  readonly mostUploadBytes: number
  readonly pieceBytes: number
}

export interface SnapshotAnswer {
  readonly state: 'reading' | 'ready' | 'failed'
  readonly share: number
  readonly reason: string | null
  readonly picture: SnapshotPicture | null
}

export interface SnapshotDiffAnswer {
  readonly before: string
  readonly after: string
  readonly diffs: readonly DiffPicture[]
}

export interface SignalAnswer {
  readonly pid: number
  readonly signal: string
  readonly sentAt: number
}

/** In hours; null: not known. */
export interface UsageFigures {
  readonly gpuHours: number
  readonly busyRatio: Reading
  readonly smRatio: Reading
  readonly memoryGibHours: number
  readonly energyKwh: Reading
  readonly cost: Reading
  readonly idleHours: number
  readonly throttledHours: number
  readonly lostOomHours: number
  readonly lostDeadHours: number
}

export interface UsageGroup extends UsageFigures {
  readonly key: string
  readonly label: string
  readonly users: readonly string[]
  readonly freeHours: Reading
}

export interface UsageDays {
  readonly at: readonly string[]
  readonly series: readonly { readonly key: string; readonly label: string; readonly gpuHours: readonly number[] }[]
  readonly freeHours: readonly number[]
}

export interface UsageAnswer {
  readonly at: number
  /** Why usage is not kept on disk now. */
  readonly fault: string | null
  readonly by: 'user' | 'job' | 'run' | 'gpu' | 'day'
  readonly simulated: boolean
  readonly hasOther: boolean
  readonly costIsEstimate: boolean
  readonly total: UsageFigures
  readonly free: UsageFigures
  readonly groups: readonly UsageGroup[]
  readonly moreGroups: number
  readonly days: UsageDays
}
