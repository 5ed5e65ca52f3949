import type { SourceHealth } from '../core/model.ts'

export interface ReplayControls {
  toggle(): void
  seek(deltaMs: number): void
  faster(): void
  slower(): void
}

/** What people do about alerts, where somebody alerts. */
export interface AlertDesk {
  /** Both give what to say about it, and throw when it was refused. */
  acknowledge(fingerprint: string): Promise<string>
  silence(fingerprint: string): Promise<string>
}

export interface Feed {
  /** Its processes are those of this machine: they can be looked at and ended. */
  readonly isLocal: boolean
  readonly replay: ReplayControls | null
  /** null: findings are all there is. */
  readonly alerts: AlertDesk | null
  /** What reading costs in other processes of ours; null when that is somebody else's. */
  usage(): { readonly cpuSeconds: number; readonly residentBytes: number } | null
  /** The state of the sources now, where it can be asked for. */
  health(): readonly SourceHealth[] | null
  stop(): Promise<void>
}
