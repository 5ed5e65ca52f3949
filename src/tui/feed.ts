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
  /** Only where we read ourselves: what that costs in other processes of ours. */
  usage?(): { readonly cpuSeconds: number; readonly residentBytes: number }
  /** Only where it can be asked for: the state of the sources now. */
  health?(): readonly SourceHealth[]
  /** Only where an agent can be asked: the stacks of a run that stands still, as lines. */
  stacks?(run: string): Promise<readonly string[]>
  stop(): Promise<void>
}
