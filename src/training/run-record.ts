/** What is known of a run besides its steps, and how reports from several ranks come together in it. */
import type { Reading, Run } from '../model.ts'

export type Outcome = 'success' | 'oom' | 'nan' | 'killed' | 'failed'

export interface RunRecord extends Run {
  readonly command: string | null
  readonly gitCommit: string | null
  readonly framework: string | null
  readonly correlationId: string | null
  /** What was said at the end: the exception's message. */
  readonly message: string | null
  /** When somebody last said something of this run. */
  readonly updatedAt: number
  /** The last report of an out-of-memory, as the SDK sent it. */
  readonly report: Readonly<Record<string, unknown>> | null
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
  readonly worldSize: Reading
  readonly gpus: readonly string[]
  readonly startedAt: Reading
  readonly correlationId: string | null
}

export interface RunEnd {
  readonly outcome: Outcome
  readonly message: string | null
  readonly endedAt: number
  /** null: the run as a whole. */
  readonly rank: number | null
}

const MOST_GPUS = 1024

export function newRun(post: RunPost, now: number): RunRecord {
  return { ...post, startedAt: post.startedAt ?? now, endedAt: null, outcome: null, message: null, updatedAt: now, report: null }
}

/** Another rank, or the same one again. What is known stays; a run that had ended goes on when this one began after its end. */
export function mergeRun(known: RunRecord, post: RunPost, now: number): RunRecord {
  const resumes = known.endedAt !== null && (post.startedAt ?? now) > known.endedAt
  return {
    ...known,
    host: known.host ?? post.host,
    user: known.user ?? post.user,
    pid: known.pid ?? post.pid,
    command: known.command ?? post.command,
    gitCommit: known.gitCommit ?? post.gitCommit,
    framework: known.framework ?? post.framework,
    correlationId: known.correlationId ?? post.correlationId,
    worldSize: greater(known.worldSize, post.worldSize),
    gpus: [...new Set([...known.gpus, ...post.gpus])].slice(0, MOST_GPUS),
    startedAt: Math.min(known.startedAt, post.startedAt ?? known.startedAt),
    endedAt: resumes ? null : known.endedAt,
    outcome: resumes ? null : known.outcome,
    message: resumes ? null : known.message,
    updatedAt: now,
  }
}

/** The more telling outcome stays: a launcher only sees an exit code where the SDK saw the exception. */
const WEIGHT: Readonly<Record<Outcome, number>> = { success: 0, killed: 1, failed: 2, nan: 3, oom: 4 }

/** A rank other than 0 that ended well says nothing of the others; any trouble ends the run. */
export function endRun(known: RunRecord, end: RunEnd, now: number): RunRecord {
  if (end.outcome === 'success' && end.rank !== null && end.rank !== 0) return { ...known, updatedAt: now }
  const isTelling = known.outcome === null || WEIGHT[end.outcome] > WEIGHT[known.outcome]
  return {
    ...known,
    endedAt: Math.max(known.startedAt, known.endedAt ?? 0, end.endedAt),
    outcome: isTelling ? end.outcome : known.outcome,
    message: isTelling ? (end.message ?? known.message) : (known.message ?? end.message),
    updatedAt: now,
  }
}

/** The part that the hub publishes. */
export function publicRun({ id, name, host, user, pid, gpus, worldSize, startedAt, endedAt, outcome }: RunRecord): Run {
  return { id, name, host, user, pid, gpus, worldSize, startedAt, endedAt, outcome }
}

function greater(a: Reading, b: Reading): Reading {
  return a === null ? b : b === null ? a : Math.max(a, b)
}
