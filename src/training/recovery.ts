/** After a crash: publishes acknowledged steps that the step log lacks. A step is known by run, rank, step and time, and counted. */
import { join } from 'node:path'
import { stat } from '../core/disk.ts'
import { logLane } from '../core/disk-lane.ts'
import type { TrainingStep } from '../core/model.ts'
import { findRecordingFiles, type LineBlock, readLines } from '../core/recording/file.ts'
import { parseStepLine } from '../core/recording/line.ts'
import { applyBatch } from './batch.ts'
import { leftJournals, readJournal } from './journal.ts'
import type { Registry } from './registry.ts'

export interface LeftSteps {
  /** Journals that can be deleted once the log holds their steps. */
  readonly paths: readonly string[]
  readonly steps: number
  /** Steps that the log does not hold. */
  readonly missing: readonly TrainingStep[]
}

/** Applies the journals of dead processes to the runs; null when there are none. */
export async function recoverSteps(dir: string, registry: Registry): Promise<LeftSteps | null> {
  const paths = await leftJournals(join(dir, 'runs'))
  if (paths.length === 0) return null
  const steps: TrainingStep[] = []
  let since = Number.POSITIVE_INFINITY
  for (const path of paths) {
    const { entries } = await readJournal(path)
    since = Math.min(since, await begunAt(path, entries))
    for (const { run, body, receivedAt } of entries) {
      const progress = await registry.progressOf(run)
      if (!progress) continue
      const applied = applyBatch(progress, run, body, receivedAt)
      if (applied.steps.length > 0) registry.touch(run, progress, receivedAt)
      for (const step of applied.steps) steps.push(step)
    }
  }
  const logged = await countLogged(dir, steps, since)
  return { paths, steps: steps.length, missing: steps.filter((step) => !logged.take(step)) }
}

/** When the first batch came, by the clock that dated it or by that of the file system, which may be another: the earlier of both. */
async function begunAt(path: string, entries: readonly { readonly receivedAt: number }[]): Promise<number> {
  let passedMs = 0
  let last = entries[0]?.receivedAt ?? 0
  for (const { receivedAt } of entries) {
    passedMs += Math.abs(receivedAt - last)
    last = receivedAt
  }
  const writtenAt = (await stat(path)).mtimeMs
  return Math.min(writtenAt - passedMs, ...entries.slice(0, 1).map(({ receivedAt }) => receivedAt))
}

class StepCounts {
  readonly #counts = new Map<string, number>()

  add(step: TrainingStep, by = 1): void {
    const key = keyOf(step)
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + by)
  }

  has(step: TrainingStep): boolean {
    return this.#counts.has(keyOf(step))
  }

  /** True, once for each time it was counted. */
  take(step: TrainingStep): boolean {
    const key = keyOf(step)
    const count = this.#counts.get(key) ?? 0
    if (count > 0) this.#counts.set(key, count - 1)
    return count > 0
  }
}

/** The log has milliseconds. */
function keyOf({ run, rank, step, at }: TrainingStep): string {
  return `${rank} ${step} ${Math.trunc(at)} ${run}`
}

/** A file system dates a write by a clock of ticks, some milliseconds behind the one that dated the batch. */
const COARSE_MS = 60_000

/** How often each of `wanted` is in the log; files not changed since `since` are skipped. */
async function countLogged(dir: string, wanted: readonly TrainingStep[], since: number): Promise<StepCounts> {
  const sought = new StepCounts()
  for (const step of wanted) sought.add(step)
  const found = new StepCounts()
  const files = await logLane.run(dir, () => findRecordingFiles(dir)).catch(() => [])
  for (const { path, kind } of files) {
    if (kind !== 'training_metrics' || (await stat(path)).mtimeMs < since - COARSE_MS) continue
    for await (const { lines } of blocksInTurn(path))
      for (const line of lines) {
        const step = parseStepLine(line)
        if (typeof step !== 'string' && sought.has(step)) found.add(step)
      }
  }
  return found
}

async function* blocksInTurn(path: string): AsyncGenerator<LineBlock> {
  const blocks = readLines(path, () => undefined)
  try {
    for (;;) {
      const { done, value } = await logLane.run(path, () => blocks.next())
      if (done) return
      yield value
    }
  } finally {
    await blocks.return(undefined)
  }
}
