/** Follows training runs from their steps: the last figures, the loss over time, how long it will take. */
import type { Finding, Reading, Run, TrainingStep } from '../core/model.ts'
import type { RunData } from './screen-data.ts'

const MOST_RUNS = 32
const MOST_LOSSES = 400
/** Weight of the newest step in the mean time of a step. */
const SMOOTHING = 0.1
/** Names under which training code that does not tell the run's own total gives its end. */
const TOTAL_STEPS = ['total_steps', 'max_steps', 'num_training_steps', 'totalSteps', 'maxSteps']
const TOTAL_EPOCHS = ['total_epochs', 'num_epochs', 'num_train_epochs', 'max_epochs', 'totalEpochs']

interface Known {
  run: Run | null
  readonly steps: Map<number, TrainingStep>
  readonly losses: number[]
  secondsPerStep: number | null
  epochsPerSecond: number | null
  arrivedAt: number
}

export class TrainingRuns {
  readonly #runs = new Map<string, Known>()

  acceptRun(run: Run, now: number): void {
    this.#of(run.id, now).run = run
  }

  acceptSteps(steps: readonly TrainingStep[], now: number): void {
    for (const step of steps) {
      const known = this.#of(step.run, now)
      known.arrivedAt = now
      const first = Math.min(step.rank, ...known.steps.keys())
      const before = known.steps.get(step.rank)
      known.steps.set(step.rank, step)
      if (step.rank !== first) continue
      known.losses.push(step.loss ?? Number.NaN)
      if (known.losses.length > 2 * MOST_LOSSES) known.losses.splice(0, MOST_LOSSES)
      if (before) this.#pace(known, before, step)
    }
  }

  /** The course of a run before we came. */
  backfill(id: string, losses: readonly number[], now: number): void {
    this.#of(id, now).losses.unshift(...losses.slice(-MOST_LOSSES))
  }

  clearHistory(): void {
    for (const known of this.#runs.values()) known.losses.length = 0
  }

  /** The latest first; a run's allocator figures and process for the memory ledger come with it. */
  views(now: number, findings: readonly Finding[]): RunData[] {
    return [...this.#runs.entries()]
      .flatMap(([id, known]): RunData[] => {
        const rank = Math.min(...known.steps.keys())
        const step = known.steps.get(rank)
        if (!step) return []
        const about = (detector: string) => findings.find((finding) => finding.detector === detector && finding.subject.run === id) ?? null
        return [
          {
            id,
            name: known.run?.name ?? id,
            step,
            ranks: known.steps.size,
            losses: known.losses.slice(-MOST_LOSSES),
            etaMs: known.run?.endedAt == null ? eta(known, step) : null,
            quietMs: Math.max(0, now - known.arrivedAt),
            outcome: known.run?.endedAt == null ? null : (known.run.outcome ?? 'ended'),
            leak: about('leak'),
            oom: about('oom'),
          },
        ]
      })
      .sort((a, b) => Number(a.outcome !== null) - Number(b.outcome !== null) || (a.name < b.name ? -1 : 1))
  }

  /** Runs on this GPU, as far as they said so. */
  on(
    gpu: { readonly id: string; readonly label: string },
    isOnlyGpu: boolean,
  ): { readonly run: Run | null; readonly step: TrainingStep }[] {
    return [...this.#runs.values()].flatMap(({ run, steps }) => {
      const step = steps.get(Math.min(...steps.keys()))
      if (!step || run?.endedAt != null) return []
      const isHere =
        run && run.gpus.length > 0 ? run.gpus.includes(gpu.id) || run.gpus.includes(gpu.label) : isOnlyGpu && this.#runs.size === 1
      return isHere ? [{ run, step }] : []
    })
  }

  #of(id: string, now: number): Known {
    let known = this.#runs.get(id)
    if (!known) {
      known = { run: null, steps: new Map(), losses: [], secondsPerStep: null, epochsPerSecond: null, arrivedAt: now }
      this.#runs.set(id, known)
      if (this.#runs.size > MOST_RUNS) this.#runs.delete(this.#oldest())
    }
    return known
  }

  #oldest(): string {
    let oldest = ''
    let at = Number.POSITIVE_INFINITY
    for (const [id, known] of this.#runs)
      if (known.arrivedAt < at) {
        oldest = id
        at = known.arrivedAt
      }
    return oldest
  }

  #pace(known: Known, before: TrainingStep, step: TrainingStep): void {
    const passed = step.step - before.step
    const seconds = (step.at - before.at) / 1000
    if (passed <= 0 || seconds <= 0) return
    known.secondsPerStep = smooth(known.secondsPerStep, seconds / passed)
    if (step.epoch !== null && before.epoch !== null && step.epoch > before.epoch)
      known.epochsPerSecond = smooth(known.epochsPerSecond, (step.epoch - before.epoch) / seconds)
  }
}

function smooth(before: number | null, value: number): number {
  return before === null ? value : before + SMOOTHING * (value - before)
}

function eta(known: Known, step: TrainingStep): Reading {
  const totalSteps = known.run?.totalSteps ?? told(step, TOTAL_STEPS)
  if (totalSteps !== null && known.secondsPerStep !== null) return Math.max(0, (totalSteps - step.step) * known.secondsPerStep * 1000)
  const totalEpochs = told(step, TOTAL_EPOCHS)
  if (totalEpochs !== null && step.epoch !== null && known.epochsPerSecond)
    return Math.max(0, ((totalEpochs - step.epoch) / known.epochsPerSecond) * 1000)
  return null
}

function told(step: TrainingStep, names: readonly string[]): number | null {
  for (const name of names) {
    const value = step.custom?.[name]
    if (value !== undefined && Number.isFinite(value) && value > 0) return value
  }
  return null
}
