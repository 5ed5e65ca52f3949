/** A batch of lines, applied to a run: what is new, what is a duplicate, what cannot be used. */
import type { TrainingStep } from '../core/model.ts'
import type { Progress } from './progress.ts'
import type { RecordOrder } from './recording-requests.ts'
import type { StackOrder } from './standstills.ts'
import { parseReceivedStep, type ReceivedStep } from './step-line.ts'

export interface BatchOutcome {
  /** Id of the run: only an agent knows what was sent to it. */
  readonly run: string
  readonly accepted: number
  readonly duplicates: number
  readonly last_seq: Readonly<Record<string, number>>
  readonly rejected: readonly { readonly line: number; readonly reason: string }[]
  /** How many lines could not be used; `rejected` names the first of them. */
  readonly rejected_count: number
  /** Custom metrics above the run's limit; the rest of their steps was accepted. */
  readonly ignored_metrics: readonly string[]
  /** Asks the SDK for a recording. */
  readonly record?: RecordOrder
  /** Asks the SDK where its threads are. */
  readonly stacks?: StackOrder
}

const MOST_NAMED = 10

export interface Applied {
  readonly outcome: BatchOutcome
  readonly steps: readonly TrainingStep[]
  /** Those of them that `isJudged` picked. */
  readonly judged: readonly TrainingStep[]
}

export function applyBatch(
  progress: Progress,
  run: string,
  body: Buffer,
  receivedAt: number,
  isJudged: (received: ReceivedStep) => boolean = () => false,
): Applied {
  const steps: TrainingStep[] = []
  const judged: TrainingStep[] = []
  const rejected: { line: number; reason: string }[] = []
  const ignored = new Set<string>()
  let duplicates = 0
  let rejectedCount = 0
  let number = 0
  for (const text of body.toString('utf8').split('\n')) {
    number++
    if (text === '' || text.trim() === '') continue
    const received = parseReceivedStep(text, run, receivedAt)
    const verdict = typeof received === 'string' ? received : progress.accept(received, ignored)
    if (typeof verdict !== 'string') {
      steps.push(verdict)
      if (typeof received !== 'string' && isJudged(received)) judged.push(verdict)
    } else if (verdict === 'duplicate') duplicates++
    else {
      rejectedCount++
      if (rejected.length < MOST_NAMED)
        rejected.push({ line: number, reason: verdict === 'too_many_ranks' ? 'rank: this run has too many ranks' : verdict })
    }
  }
  return {
    steps,
    judged,
    outcome: {
      run,
      accepted: steps.length,
      duplicates,
      last_seq: progress.lastSeqs(),
      rejected,
      rejected_count: rejectedCount,
      ignored_metrics: [...ignored].slice(0, MOST_NAMED),
    },
  }
}
