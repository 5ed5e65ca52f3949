/** What the agent and the process that analyzes a snapshot say to each other. */
import type { BandKind } from '../../core/memory/snapshot-picture.ts'

export type Question =
  | { readonly ask: 'picture' }
  | {
      readonly ask: 'columns'
      readonly device: number
      readonly kind: BandKind
      readonly from: number
      readonly to: number
      readonly count: number
    }
  | { readonly ask: 'moment'; readonly device: number; readonly index: number }
  | { readonly ask: 'diff'; readonly before: SnapshotFile; readonly at: 'peak' | 'end' }

export interface SnapshotFile {
  readonly path: string
  /** Without its folder. */
  readonly name: string
}

export type ToAnalysis =
  | { readonly type: 'open'; readonly file: SnapshotFile }
  | { readonly type: 'question'; readonly id: number; readonly question: Question }

export type FromAnalysis =
  | { readonly type: 'progress'; readonly share: number }
  | { readonly type: 'opened' }
  /** The file cannot be read: nothing will be answered. */
  | { readonly type: 'unreadable'; readonly reason: string }
  /** JSON, as it goes to the browser. */
  | { readonly type: 'answer'; readonly id: number; readonly body: string }
  | { readonly type: 'refusal'; readonly id: number; readonly reason: string }
