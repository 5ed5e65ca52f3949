/** What a frame is drawn from: plain data about the machine, and what the person at the keyboard has chosen. */
import type { AlertView } from '../core/alert-contract.ts'
import type { GpuView } from '../core/kinds.ts'
import type { LedgerEntry } from '../core/memory/ledger.ts'
import type { Finding, HostSample, ProcessView, Provenance, RankPlace, Reading, SourceHealth, TrainingStep } from '../core/model.ts'
import type { PlaybackState } from '../core/playback.ts'
import type { PhaseShare } from '../core/step-phases.ts'

export interface GpuData {
  readonly view: GpuView
  readonly utilization: ArrayLike<number>
  readonly memory: ArrayLike<number>
  readonly phase: number
  readonly stepMs: number
  /** When runs on it died: marks on its graphs. */
  readonly deaths: readonly number[]
  /** The finding that says when its memory is full; null when none does. */
  readonly forecast: Finding | null
  /** Where memory is; null when nobody looks. */
  readonly ledger: readonly LedgerEntry[] | null
}

export interface RunData {
  readonly id: string
  readonly name: string
  readonly step: TrainingStep
  readonly ranks: number
  /** The latest step of each rank, ascending. */
  readonly rankSteps: readonly TrainingStep[]
  readonly places: readonly RankPlace[]
  readonly straggler: Finding | null
  /** Model FLOPs utilization of the latest step; null: not known. */
  readonly mfuRatio: Reading
  readonly losses: readonly number[]
  /** What the latest steps were spent on; empty where it is not known. */
  readonly phases: readonly PhaseShare[]
  readonly etaMs: Reading
  readonly quietMs: number
  readonly outcome: string | null
  readonly leak: Finding | null
  readonly stall: Finding | null
  readonly oom: Finding | null
}

/** What an agent does about a finding. */
export interface AlertData extends AlertView {
  /** When the silence ends that keeps it quiet; null when none does. */
  readonly silencedUntil: Reading
}

export interface ReplayData {
  readonly at: number
  readonly firstAt: number
  readonly lastAt: Reading
  readonly speed: number
  readonly state: 'playing' | 'paused' | 'seeking' | 'ended'
}

export interface ScreenData {
  readonly now: number
  /** The time that the figures are of: now, or the recorded moment. */
  readonly at: number
  readonly hostname: string
  /** `sampling here`, or the address of the agent. */
  readonly origin: string
  readonly provenance: Provenance
  /** Age of the newest GPU sample; null before the first. */
  readonly ageMs: Reading
  readonly intervalMs: number
  /** Why nothing comes from the agent any more, and since when; null when it does. */
  readonly linkLost: { readonly since: number; readonly reason: string } | null
  readonly gpus: readonly GpuData[]
  readonly processes: readonly ProcessView[]
  /** GPU memory of a process over time, by `pid@gpu`. */
  readonly processMemory: (key: string) => ArrayLike<number>
  readonly host: {
    readonly sample: HostSample
    readonly live: boolean
    readonly cpu: ArrayLike<number>
    readonly memory: ArrayLike<number>
  } | null
  readonly health: readonly SourceHealth[]
  readonly findings: readonly Finding[]
  readonly resolved: readonly Finding[]
  /** null: nobody alerts here, there are findings alone. */
  readonly alerts: readonly AlertData[] | null
  readonly runs: readonly RunData[]
  /** What this program and its sampler cost; null before it is known. */
  readonly overhead: { readonly cpuRatio: number; readonly residentBytes: number } | null
  /** A recording that this program plays. */
  readonly replay: ReplayData | null
  /** A recording that the agent plays. */
  readonly playback: PlaybackState | null
  readonly isReadonly: boolean
}

export const PANELS = ['gpus', 'host', 'training', 'processes', 'findings'] as const
export type Panel = (typeof PANELS)[number]

export const FOCUSABLE: readonly Panel[] = ['gpus', 'processes', 'training', 'findings']

export const SORTS = [
  'gpu',
  'pid',
  'user',
  'type',
  'memory',
  'share',
  'sm',
  'bandwidth',
  'encoder',
  'decoder',
  'cpu',
  'ram',
  'time',
  'job',
  'command',
] as const
export type Sort = (typeof SORTS)[number]

export type GpuLayout = 'auto' | 'cards' | 'rows'

export interface Scroll {
  readonly offset: number
  readonly selected: number
}

export type Overlay =
  | { readonly kind: 'help'; readonly offset: number }
  | { readonly kind: 'sort'; readonly selected: number }
  | { readonly kind: 'panels'; readonly selected: number }
  /** By fingerprint: alerts come and go while somebody looks. */
  | { readonly kind: 'alerts'; readonly selected: number; readonly fingerprint: string | null }
  | { readonly kind: 'silence'; readonly finding: Finding; readonly selected: number }
  /** `stacks`: of a stall, once they are there. */
  | { readonly kind: 'finding'; readonly fingerprint: string; readonly offset: number; readonly stacks?: readonly string[] }
  | { readonly kind: 'ranks'; readonly run: string; readonly offset: number }
  | { readonly kind: 'kill'; readonly question: KillQuestion; readonly selected: number }
  | { readonly kind: 'process'; readonly details: ProcessDetails; readonly showEnvironment: boolean; readonly offset: number }

export interface KillQuestion {
  readonly pid: number
  readonly user: string
  readonly command: string
  readonly gpuLabel: string
  readonly memoryUsedBytes: Reading
  /** Identity: a reused PID has another. */
  readonly startTicks: number
}

/** What is known of one process beyond its row; parts are null where they may not be read. */
export interface ProcessDetails {
  readonly key: string
  readonly process: ProcessView
  readonly gpuLabel: string
  readonly folder: string | null
  readonly limits: readonly string[] | null
  readonly environment: readonly string[] | null
  /** Why limits and environment are missing. */
  readonly note: string | null
}

export interface View {
  readonly focus: Panel
  readonly hidden: ReadonlySet<Panel>
  readonly layout: GpuLayout
  readonly sort: Sort
  readonly descending: boolean
  readonly tree: boolean
  readonly filter: string
  readonly isFiltering: boolean
  /** GpuInfo.id of the only GPU shown; null for all. */
  readonly gpu: string | null
  readonly paused: boolean
  /** `pid@gpu`; null: the first row. */
  readonly process: string | null
  readonly scroll: Readonly<Record<Panel, Scroll>>
  readonly overlay: Overlay | null
  /** Said in the key bar until the next key. */
  readonly message: { readonly text: string; readonly isTrouble: boolean } | null
}

const TOP: Scroll = { offset: 0, selected: 0 }

export const FIRST_VIEW: View = {
  focus: 'processes',
  hidden: new Set(),
  layout: 'auto',
  sort: 'gpu',
  descending: false,
  tree: false,
  filter: '',
  isFiltering: false,
  gpu: null,
  paused: false,
  process: null,
  scroll: { gpus: TOP, host: TOP, training: TOP, processes: TOP, findings: TOP },
  overlay: null,
  message: null,
}

export function processKey(process: ProcessView): string {
  return `${process.pid}@${process.gpu}`
}
