/** What the agent and its sampler processes say to each other. Plain JSON over the child's channel. */
import { revivedStep } from '../core/known/revive.ts'
import type { GpuInfo, Provenance, Sample } from '../core/model.ts'
import type { PlaybackCommand, PlaybackState } from '../core/playback.ts'
import type { DriverFaultKind, RunProcessRef, SourceOptions } from '../core/source-contract.ts'

export interface StartMessage {
  readonly type: 'start'
  readonly root: string
  readonly intervalMs: number
  /** How often an idle child sends a heartbeat. */
  readonly beatMs: number
  readonly options: SourceOptions
}

export type ToSampler =
  | StartMessage
  | { readonly type: 'open' | 'close'; readonly source: string }
  | { readonly type: 'watch'; readonly pids: readonly number[]; readonly runs: readonly RunProcessRef[] }
  | { readonly type: 'playback'; readonly source: string; readonly command: PlaybackCommand }
  /** From now on every so often; sources that set their own pace keep it. */
  | { readonly type: 'pace'; readonly intervalMs: number }
  | { readonly type: 'stop' }

export interface TickMessage {
  readonly type: 'tick'
  readonly source: string
  readonly at: number
  readonly samples: readonly Sample[]
  readonly skippedTicks: number
  readonly readMs: number
  /** Who is read right after this: announces it as `begin` does, without a message of its own. */
  readonly next?: string
  /** Of the process, now and then. */
  readonly usage?: ProcessUsage
}

export interface ProcessUsage {
  readonly cpuSeconds: number
  readonly residentBytes: number
}

export type FromSampler =
  | {
      readonly type: 'opened'
      readonly source: string
      readonly provenance: Provenance
      readonly intervalMs: number
      readonly devices: readonly GpuInfo[]
    }
  | { readonly type: 'paced'; readonly source: string; readonly intervalMs: number }
  | { readonly type: 'absent'; readonly source: string }
  /** The source is there but cannot be used; the child has let go of it. */
  | { readonly type: 'failed'; readonly source: string; readonly kind: DriverFaultKind; readonly message: string }
  | { readonly type: 'devices'; readonly source: string; readonly devices: readonly GpuInfo[] }
  /** Before reading any but the first source, where no tick announced it, so that a silence can be blamed on the right one. */
  | { readonly type: 'begin'; readonly source: string }
  | TickMessage
  /** `stays`: it can be played again. */
  | { readonly type: 'ended'; readonly source: string; readonly stays?: true }
  | { readonly type: 'playback'; readonly source: string; readonly playback: PlaybackState }
  /** What follows is read from the beginning of the recording again. */
  | { readonly type: 'restarted'; readonly source: string }
  | { readonly type: 'beat'; readonly usage: ProcessUsage }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'info' | 'warn' | 'error'
      readonly source: string
      readonly message: string
      readonly detail: object
    }

/** NaN comes as text: see runner.ts. */
export function revived(samples: readonly Sample[]): readonly Sample[] {
  return samples.some(({ kind }) => kind === 'step') ? samples.map((one) => (one.kind === 'step' ? revivedStep(one) : one)) : samples
}
