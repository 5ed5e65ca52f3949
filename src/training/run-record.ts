/** What is known of a run apart from its steps, and how reports of several ranks are merged. */

import type { RankStacks } from '../core/hang/rank-stacks.ts'
import { type Hyperparameters, mergedHyperparameters } from '../core/hyperparameters.ts'
import type { LineRecording } from '../core/memory/line-recording.ts'
import { causeWords, isCauseKnown, ownPlace, placeText, readOomReport } from '../core/memory/oom-report.ts'
import type { RunOutcome as Outcome, RankPlace, Reading, Run, RunEnding, RunHang, RunLeakLine, RunLoader } from '../core/model.ts'
import type { RunModel } from '../core/run-model.ts'

export type { RunOutcome as Outcome } from '../core/model.ts'

export interface RunRecord extends Omit<Run, 'ending' | 'leakLines' | 'hang' | 'model' | 'places'> {
  readonly command: string | null
  readonly gitCommit: string | null
  readonly framework: string | null
  readonly hyperparameters: Hyperparameters
  readonly correlationId: string | null
  /** The exception's message at the end. */
  readonly message: string | null
  /** When anything was last reported of this run. */
  readonly updatedAt: number
  /** The last out-of-memory report, as the SDK sent it. */
  readonly report: Readonly<Record<string, unknown>> | null
  /** Its processes on this host that were seen alive. */
  readonly processes: readonly RunProcess[]
  /** Nobody reported the end: it was concluded from silence, and is undone when the run reports again. */
  readonly endIsPresumed: boolean
  /** Whether its SDK can record which lines keep memory; null: it did not say. */
  readonly canRecord: boolean | null
  readonly model: RunModel | null
  /** By rank, ascending. */
  readonly places: readonly RankPlace[]
  /** Newest first. */
  readonly recordings: readonly LineRecording[]
  /** Whether its SDK says where its threads are when it is asked; null: it did not say. */
  readonly canTellStacks: boolean | null
  /** When it last stood still: who held it up, and where its ranks were. */
  readonly hang: RunHang | null
  readonly stacks: readonly RankStacks[]
}

export interface RunProcess {
  readonly pid: number
  /** In the kernel's ticks since boot. */
  readonly start: number
  /** Id of that boot; null: unknown. */
  readonly boot?: string | null
}

/** What POST /api/v1/runs takes, in base form. */
export interface RunPost {
  readonly id: string
  readonly name: string
  readonly host: string | null
  readonly user: string | null
  readonly pid: Reading
  readonly command: string | null
  readonly gitCommit: string | null
  readonly framework: string | null
  readonly hyperparameters: Hyperparameters
  readonly loader: RunLoader | null
  readonly worldSize: Reading
  readonly totalSteps: Reading
  readonly gpus: readonly string[]
  readonly startedAt: Reading
  readonly correlationId: string | null
  readonly canRecord: boolean | null
  readonly model: RunModel | null
  /** Of the process that reports; null: it does not say. */
  readonly rank: Reading
  readonly canTellStacks: boolean | null
}

export interface RunEnd {
  readonly outcome: Outcome
  readonly message: string | null
  readonly endedAt: number
  /** null: the run as a whole. */
  readonly rank: number | null
}

const MOST_GPUS = 1024
const MOST_PROCESSES = 64
const MOST_LEAK_LINES = 8

/** It never stood still. */
export const NO_HANG: Pick<RunRecord, 'hang' | 'stacks'> = { hang: null, stacks: [] }

/** What an earlier version did not store. */
export const UNKNOWN_PARTS: Pick<
  RunRecord,
  | 'provenance'
  | 'totalSteps'
  | 'processes'
  | 'endIsPresumed'
  | 'canRecord'
  | 'recordings'
  | 'hyperparameters'
  | 'model'
  | 'canTellStacks'
  | 'hang'
  | 'stacks'
  | 'places'
> = {
  provenance: 'live',
  totalSteps: null,
  processes: [],
  endIsPresumed: false,
  canRecord: null,
  recordings: [],
  hyperparameters: {},
  model: null,
  places: [],
  canTellStacks: null,
  ...NO_HANG,
}

/** `process`: the one that reports, when it runs on this host. */
export function newRun({ rank, ...post }: RunPost, now: number, process: RunProcess | null): RunRecord {
  const places = withPlace([], { ...post, rank })
  const known = {
    startedAt: post.startedAt ?? now,
    updatedAt: now,
    report: null,
    processes: process ? [process] : [],
    recordings: [],
    places,
  }
  return { ...post, ...OPEN, ...NO_HANG, provenance: 'live', ...known }
}

export const OPEN: Pick<RunRecord, 'endedAt' | 'outcome' | 'message' | 'endIsPresumed'> = {
  endedAt: null,
  outcome: null,
  message: null,
  endIsPresumed: false,
}

/** The run continues after its end had been presumed. */
export function reopened(known: RunRecord, now: number): RunRecord {
  return { ...known, ...OPEN, updatedAt: now }
}

/** Another rank, or the same one again. Known values stay; an ended run continues when this one began after its end. */
export function mergeRun(known: RunRecord, post: RunPost, now: number, process: RunProcess | null): RunRecord {
  const resumes = known.endedAt !== null && ((post.startedAt ?? now) > known.endedAt || (known.endIsPresumed && process !== null))
  const others = resumes ? [] : known.processes.filter(({ pid }) => pid !== process?.pid)
  return {
    ...known,
    host: known.host ?? post.host,
    user: known.user ?? post.user,
    pid: resumes ? (post.pid ?? known.pid) : (known.pid ?? post.pid),
    command: known.command ?? post.command,
    gitCommit: known.gitCommit ?? post.gitCommit,
    framework: known.framework ?? post.framework,
    hyperparameters: mergedHyperparameters(known.hyperparameters, post.hyperparameters),
    correlationId: known.correlationId ?? post.correlationId,
    loader: post.loader ?? known.loader ?? null,
    worldSize: greater(known.worldSize, post.worldSize),
    // The latest report counts: a plan may become shorter as well as longer.
    totalSteps: post.totalSteps ?? known.totalSteps,
    gpus: [...new Set([...known.gpus, ...post.gpus])].slice(0, MOST_GPUS),
    startedAt: Math.min(known.startedAt, post.startedAt ?? known.startedAt),
    canRecord: post.canRecord ?? known.canRecord,
    model: post.model ?? known.model,
    places: withPlace(resumes ? [] : known.places, post),
    recordings: resumes ? [] : known.recordings,
    canTellStacks: post.canTellStacks ?? known.canTellStacks,
    ...(resumes ? NO_HANG : {}),
    processes: process ? [...others, process].slice(-MOST_PROCESSES) : others,
    ...(resumes ? OPEN : {}),
    updatedAt: now,
  }
}

/** Where the rank is that reports. */
function withPlace(
  known: readonly RankPlace[],
  { rank, host, gpus, pid }: Pick<RunPost, 'rank' | 'host' | 'gpus' | 'pid'>,
): readonly RankPlace[] {
  if (rank === null) return known
  const others = known.filter((place) => place.rank !== rank)
  if (others.length >= MOST_GPUS) return known
  return [...others, { rank, host, gpu: gpus[0] ?? null, pid }].sort((a, b) => a.rank - b.rank)
}

/** The more specific outcome stays: a launcher only sees an exit code where the SDK saw the exception. */
const WEIGHT: Readonly<Record<Outcome, number>> = { success: 0, killed: 1, failed: 2, nan: 3, oom: 4 }

/** The loss is NaN. Hugging Face's Trainer writes 0 for it (`logging_nan_inf_filter`), but the gradient norm shows it. */
export function endsInNan({ loss, gradientNorm }: { readonly loss: Reading; readonly gradientNorm: Reading }): boolean {
  return Number.isNaN(loss) || (loss === 0 && Number.isNaN(gradientNorm))
}

/** Success of a rank other than 0 says nothing of the others; any failure ends the run. */
export function endRun(known: RunRecord, end: RunEnd, now: number): RunRecord {
  if (end.outcome === 'success' && end.rank !== null && end.rank !== 0) return { ...known, updatedAt: now }
  const isTelling = known.outcome === null || known.endIsPresumed || WEIGHT[end.outcome] > WEIGHT[known.outcome]
  return {
    ...known,
    endedAt: Math.max(known.startedAt, known.endIsPresumed ? 0 : (known.endedAt ?? 0), end.endedAt),
    endIsPresumed: false,
    outcome: isTelling ? end.outcome : known.outcome,
    message: known.endIsPresumed ? end.message : isTelling ? (end.message ?? known.message) : (known.message ?? end.message),
    updatedAt: now,
  }
}

/** The part that the hub publishes. */
export function publicRun(run: RunRecord): Run {
  const {
    id,
    name,
    provenance,
    host,
    user,
    pid,
    gpus,
    worldSize,
    totalSteps,
    startedAt,
    endedAt,
    outcome,
    model,
    loader = null,
    places,
  } = run
  return {
    id,
    name,
    provenance,
    host,
    user,
    pid,
    gpus,
    worldSize,
    totalSteps,
    startedAt,
    endedAt,
    outcome,
    ending: endedAt === null ? null : endingOf(run),
    leakLines: leakLinesOf(run),
    loader,
    model,
    places,
    hang: run.hang,
  }
}

/** The line that keeps most, of each rank that was recorded. */
export function leakLinesOf({ recordings }: RunRecord): readonly RunLeakLine[] {
  const named = recordings.filter(({ lines }) => lines.length > 0)
  return named
    .filter(({ rank, kind }, index) => named.findIndex((one) => one.rank === rank && one.kind === kind) === index)
    .flatMap(({ rank, at, lines, kind }) =>
      lines.slice(0, 1).map((line) => ({ ...line, rank, at, ...(kind === 'host' ? { isHost: true } : {}) })),
    )
    .slice(0, MOST_LEAK_LINES)
}

/** Ctrl-C, `kill`, `scancel`, a closed terminal: a person or a scheduler wanted it to end. */
const ASKED = /\bSIG(INT|TERM|HUP|QUIT)\b|KeyboardInterrupt/

function endingOf(run: RunRecord): RunEnding {
  const { outcome, message, report, endIsPresumed } = run
  const memory = outcome === 'oom' ? readOomReport(report) : null
  const leak = leakLinesOf(run).find(({ isHost }) => !isHost)
  const place = memory === null ? null : memory.cause?.kind === 'leak' ? (leak ?? memory.holders[0] ?? ownPlace(memory)) : ownPlace(memory)
  return {
    message,
    cause: memory?.cause && isCauseKnown(memory) ? causeWords(memory.cause.kind) : null,
    place: place === null ? null : placeText(place),
    isAsked: outcome === 'killed' && !endIsPresumed && ASKED.test(message ?? ''),
    isPresumed: endIsPresumed,
  }
}

function greater(a: Reading, b: Reading): Reading {
  return a === null ? b : b === null ? a : Math.max(a, b)
}
