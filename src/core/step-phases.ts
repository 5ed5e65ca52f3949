/** The phases of a training step: their names, which clock they are by, and what they are of the whole. Needs neither Node.js nor a package. */
import type { TrainingStep } from './model.ts'

/** Phases by the GPU's clock are sent under the name of the phase and this. */
export const GPU_CLOCK = '@gpu'
export const NOT_ATTRIBUTED = 'not attributed'

/** In the order in which they are shown, with the names that trainers use for them. */
const NAMES = {
  data: ['data_wait', 'data_loading', 'data_load', 'data_time', 'dataloader', 'input'],
  copy: ['h2d', 'to_device', 'host_to_device', 'transfer'],
  forward: [],
  forward_backward: [],
  backward: [],
  sync: ['wait', 'communication', 'comm', 'allreduce', 'all_reduce', 'barrier'],
  optimizer: [],
  logging: ['log'],
  evaluation: ['eval', 'validation'],
  checkpoint: ['save', 'checkpointing'],
} as const

export type Phase = keyof typeof NAMES
const PHASES = Object.keys(NAMES) as readonly Phase[]
const CANONICAL = new Map<string, string>(PHASES.flatMap((phase) => NAMES[phase].map((name) => [name, phase] as const)))
/** Not part of every step: by the host's clock always, as the GPU's may leave out the step. */
const OCCASIONAL: ReadonlySet<string> = new Set<Phase>(['logging', 'evaluation', 'checkpoint'])

export type PhaseSeconds = Readonly<Record<string, number>>
export type PhaseClock = 'gpu' | 'host'

/** By the given clock, under their usual names; null: the step has none by it. */
export function phasesBy(clock: PhaseClock, sent: PhaseSeconds | null): PhaseSeconds | null {
  let found: Record<string, number> | null = null
  for (const name in sent) {
    const seconds = sent[name]
    const isGpu = name.endsWith(GPU_CLOCK)
    if (isGpu !== (clock === 'gpu') || seconds === undefined || !(seconds >= 0) || seconds === Number.POSITIVE_INFINITY) continue
    const plain = isGpu ? name.slice(0, -GPU_CLOCK.length) : name
    const phase = CANONICAL.get(plain) ?? plain
    found ??= {}
    found[phase] = (found[phase] ?? 0) + seconds
  }
  return found
}

export function hasGpuClock(sent: PhaseSeconds | null): boolean {
  for (const name in sent) if (name.endsWith(GPU_CLOCK)) return true
  return false
}

/** By one clock: the GPU's where the step has it, as only that one knows what the GPU waited for. What is not part of every step is by the host's. */
export function phasesOf({ phaseSeconds }: Pick<TrainingStep, 'phaseSeconds'>): PhaseSeconds | null {
  const host = phasesBy('host', phaseSeconds)
  const gpu = phasesBy('gpu', phaseSeconds)
  if (gpu === null) return host
  return { ...gpu, ...Object.fromEntries(Object.entries(host ?? {}).filter(([name]) => OCCASIONAL.has(name))) }
}

export function isOccasional(phase: string): boolean {
  return OCCASIONAL.has(phase)
}

/** The step, or its phases where they are more: a trainer may or may not count the wait for data. */
export function wholeSeconds(step: Pick<TrainingStep, 'stepSeconds'>, phases: PhaseSeconds): number {
  const told = step.stepSeconds !== null && Number.isFinite(step.stepSeconds) ? step.stepSeconds : 0
  return Math.max(told, sumOf(phases))
}

export interface PhaseShare {
  readonly phase: string
  readonly ratio: number
}

/** What phases are of a whole, in their order, and the rest as not attributed. */
export function sharesOf(phases: PhaseSeconds, whole: number): readonly PhaseShare[] {
  if (!(whole > 0)) return []
  const names = Object.keys(phases).sort((a, b) => placeOf(a) - placeOf(b))
  const shares = names.map((phase) => ({ phase, ratio: (phases[phase] ?? 0) / whole }))
  const rest = 1 - shares.reduce((sum, { ratio }) => sum + ratio, 0)
  return rest > 0.0005 ? [...shares, { phase: NOT_ATTRIBUTED, ratio: rest }] : shares
}

/** Where a phase is shown; unknown ones are last. */
export function placeOf(phase: string): number {
  const place = PHASES.indexOf(phase as Phase)
  return place < 0 ? PHASES.length : place
}

interface Sum {
  readonly seconds: Record<string, number>
  whole: number
}

export interface SavedPhases {
  readonly gpu?: Sum
  readonly host?: Sum
}

const MOST_NAMES = 32

/** The phases of many steps together. */
export class PhaseSums {
  readonly #sums: Record<PhaseClock, Sum> = { gpu: { seconds: {}, whole: 0 }, host: { seconds: {}, whole: 0 } }

  static from(saved: SavedPhases | undefined): PhaseSums {
    const sums = new PhaseSums()
    for (const clock of ['gpu', 'host'] as const) {
      const sum = saved?.[clock]
      if (sum) sums.#sums[clock] = { seconds: { ...sum.seconds }, whole: sum.whole }
    }
    return sums
  }

  add(step: Pick<TrainingStep, 'phaseSeconds' | 'stepSeconds'>): void {
    for (const clock of ['gpu', 'host'] as const) {
      const phases = phasesBy(clock, step.phaseSeconds)
      if (phases === null) continue
      const sum = this.#sums[clock]
      sum.whole += wholeSeconds(step, phases)
      for (const name in phases)
        if (name in sum.seconds || Object.keys(sum.seconds).length < MOST_NAMES)
          sum.seconds[name] = (sum.seconds[name] ?? 0) + (phases[name] ?? 0)
    }
  }

  /** Of all the time; empty where no step had phases. */
  shares(): readonly PhaseShare[] {
    const { gpu, host } = this.#sums
    if (!(gpu.whole > 0)) return sharesOf(host.seconds, host.whole)
    const [often, seldom] = [{} as Record<string, number>, {} as Record<string, number>]
    for (const [name, seconds] of Object.entries(host.seconds)) if (OCCASIONAL.has(name)) seldom[name] = seconds / (host.whole || 1)
    for (const [name, seconds] of Object.entries(gpu.seconds)) if (!OCCASIONAL.has(name)) often[name] = seconds
    const every = gpu.whole - sumOf(gpu.seconds) + sumOf(often)
    const scale = every > 0 ? Math.max(0, 1 - sumOf(seldom)) / every : 0
    const scaled = Object.fromEntries(Object.entries(often).map(([name, seconds]) => [name, seconds * scale]))
    return sharesOf({ ...scaled, ...seldom }, 1)
  }

  toJSON(): SavedPhases {
    return this.#sums
  }
}

function sumOf(phases: PhaseSeconds): number {
  let sum = 0
  for (const name in phases) sum += phases[name] ?? 0
  return sum
}
