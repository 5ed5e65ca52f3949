/** What the supervisor needs, and what it reports to the agent. */
import type { GpuInfo, Provenance, Sample, SourceHealth } from '../core/model.ts'
import type { PlaybackState } from '../core/playback.ts'
import type { SourceOptions } from '../core/source-contract.ts'

export interface SourceTickReport {
  readonly source: string
  readonly provenance: Provenance
  readonly at: number
  readonly samples: readonly Sample[]
}

export interface SupervisorOptions {
  readonly entry: URL
  readonly root: string
  readonly env: NodeJS.ProcessEnv
  readonly intervalMs: number
  readonly deadlineMs: number
  readonly openDeadlineMs: number
  /** From here on a driver that is still starting counts as one that does not respond, though it may go on to start; absent: not before it fails. */
  readonly slowStartMs?: number | undefined
  readonly options: SourceOptions
  readonly backoffMs: { readonly first: number; readonly most: number }
  readonly now: () => number
  readonly onDevices: (source: string, devices: readonly GpuInfo[]) => void
  readonly onTick: (report: SourceTickReport) => void
  readonly onHealth: (health: readonly SourceHealth[]) => void
  readonly onEnded: (source: string) => void
  readonly onPlayback?: (playback: PlaybackState) => void
  /** A recording is read from its beginning again. */
  readonly onRestart?: (why: 'moved' | 'replaced') => void
  readonly onLog: (level: 'debug' | 'info' | 'warn' | 'error', message: string, detail: object) => void
}
