/** What memory is for, judged by how long it lives and by who made it. What cannot be told stays unknown. */
import { ACTION } from '../read/keys.ts'
import { EMPTY_STACK, NO_STACK } from '../read/stack-table.ts'
import type { Lifetimes } from './lifetimes.ts'
import type { StackWordsTable } from './stack-words.ts'
import { countUpTo, type Steps } from './steps.ts'
import { type Phase, TraitsTable } from './traits.ts'

export const CATEGORIES = [
  'weights',
  'gradients',
  'optimizer_state',
  'activations',
  'temporary',
  'communication',
  'input',
  'unknown',
] as const

export type Category = (typeof CATEGORIES)[number]

const UNKNOWN = CATEGORIES.indexOf('unknown')
/** How far back an event of a phase is looked for. */
const LOOK_BACK = 64
/** Alive for so much of the window counts as long where steps are not known. */
const LONG_SHARE = 0.25

/** Category by a pattern that the person gave: it decides before everything else. */
export interface CategoryRule {
  readonly category: Category
  readonly match: RegExp
}

export class Categories {
  readonly #lifetimes: Lifetimes
  readonly #steps: Steps
  readonly #words: StackWordsTable
  readonly #traits: TraitsTable
  readonly #rules: readonly CategoryRule[]
  readonly #ruled = new Map<number, Category | null>()
  /** Bytes by stack and category of allocations that ended in the window: what others of the same stack turned out to be. */
  readonly #usual: Map<number, Float64Array>
  readonly #parameterSizes: ReadonlySet<number>

  constructor(lifetimes: Lifetimes, steps: Steps, words: StackWordsTable, rules: readonly CategoryRule[] = []) {
    this.#lifetimes = lifetimes
    this.#steps = steps
    this.#words = words
    this.#rules = rules
    this.#traits = new TraitsTable(words, hasPythonStacksOnly(lifetimes, words))
    this.#usual = this.#learn()
    this.#parameterSizes = this.#sizesOfParameters()
  }

  ofAlloc(index: number): Category {
    const stack = this.#lifetimes.trace.stack(index)
    return this.#rule(stack) ?? this.#byLife(index) ?? this.#usualOf(stack) ?? this.#atTheEnd(index)
  }

  ofEarly(block: number): Category {
    const { early, trace, freesRepeatStacks } = this.#lifetimes
    const stack = early.stacks[block] as number
    const isFreed = (early.freedAt[block] as number) < trace.count
    const traits = this.#traits.of(stack)
    if (isFreed && !freesRepeatStacks) {
      // All that is known of it is who freed it.
      if (traits.isZeroGrad) return 'gradients'
      return traits.phase === 'backward' ? 'activations' : 'unknown'
    }
    const ruled = this.#rule(stack)
    if (ruled !== null) return ruled
    if (traits.isCommunication) return 'communication'
    if (traits.phase === 'optimizer') return 'optimizer_state'
    if (traits.phase === 'backward') return 'gradients'
    if (traits.isModuleSetup) return 'weights'
    if (traits.isInput) return 'input'
    if (isFreed && traits.phase === 'forward') return 'activations'
    const isNameless = stack === NO_STACK || stack === EMPTY_STACK
    return isNameless && !isFreed && this.#parameterSizes.has(early.sizes[block] as number) ? 'weights' : 'unknown'
  }

  #rule(stack: number): Category | null {
    if (this.#rules.length === 0) return null
    const known = this.#ruled.get(stack)
    if (known !== undefined) return known
    const frames = this.#words.framesOf(stack).map(({ file, line, name }) => `${file}:${line} ${name}`)
    const found = this.#rules.find(({ match }) => frames.some((frame) => match.test(frame)))?.category ?? null
    this.#ruled.set(stack, found)
    return found
  }

  /** Null: it has not ended, and nothing that it lived through tells. */
  #byLife(index: number): Category | null {
    const { trace } = this.#lifetimes
    const traits = this.#traits.of(trace.stack(index))
    const end = this.#lifetimes.endOf(index)
    const hasEnded = end < trace.count
    if (traits.isCommunication) return 'communication'
    if (traits.isInput) return 'input'
    const isLong = this.#isLong(index, end)
    if (traits.phase === 'optimizer') return isLong ? 'optimizer_state' : hasEnded ? 'temporary' : null
    if (traits.phase === 'backward') return this.#isGradient(index, end) ? 'gradients' : hasEnded ? 'temporary' : null
    // The outputs of a step live until the next one replaces them.
    if (isLong && !(traits.phase === 'forward' && this.#stepsLived(index, end) === 1)) return traits.isModuleSetup ? 'weights' : 'unknown'
    if (!hasEnded) return null
    return isLong || this.#phaseOfEnd(end) === 'backward' ? 'activations' : 'temporary'
  }

  /** It lived on past the end of a step. */
  #isLong(index: number, end: number): boolean {
    if (this.#steps.source === 'equal parts') return end - index > LONG_SHARE * this.#lifetimes.trace.count
    return this.#stepsLived(index, end) > 0
  }

  /** Ends of steps that it lived through. */
  #stepsLived(index: number, end: number): number {
    return countUpTo(this.#steps.ends, end - 1) - countUpTo(this.#steps.ends, index)
  }

  /** It was there when the optimizer took its step. */
  #isGradient(index: number, end: number): boolean {
    const { starts } = this.#steps
    return starts.length > 0 ? countUpTo(starts, end - 1) > countUpTo(starts, index) : this.#isLong(index, end)
  }

  /** Who frees: by the stack of the free, or by what was last allocated before it. */
  #phaseOfEnd(end: number): Phase {
    const { trace, freesRepeatStacks } = this.#lifetimes
    if (!freesRepeatStacks && trace.action(end) !== ACTION.alloc) {
      const { phase } = this.#traits.of(trace.stack(end))
      if (phase !== 'other') return phase
    }
    for (let i = end - 1; i >= Math.max(0, end - LOOK_BACK); i--)
      if (trace.action(i) === ACTION.alloc) return this.#traits.of(trace.stack(i)).phase
    return 'other'
  }

  #atTheEnd(index: number): Category {
    const { trace } = this.#lifetimes
    const { phase, isStateSetup, isModuleSetup } = this.#traits.of(trace.stack(index))
    if (isStateSetup) return 'optimizer_state'
    if (isModuleSetup) return 'weights'
    if (phase === 'forward') return 'activations'
    return phase === 'backward' ? 'gradients' : phase === 'optimizer' ? 'temporary' : 'unknown'
  }

  #usualOf(stack: number): Category | null {
    const sums = this.#usual.get(stack)
    if (sums === undefined) return null
    let best = UNKNOWN
    for (let i = 0; i < sums.length; i++) if ((sums[i] as number) > (sums[best] as number)) best = i
    return (sums[best] as number) > 0 ? (CATEGORIES[best] as Category) : null
  }

  #learn(): Map<number, Float64Array> {
    const { trace } = this.#lifetimes
    const usual = new Map<number, Float64Array>()
    // Only stacks that have something alive at the end are ever asked for.
    for (let i = 0; i < trace.count; i++)
      if (trace.action(i) === ACTION.alloc && this.#lifetimes.endOf(i) === trace.count)
        usual.set(trace.stack(i), new Float64Array(CATEGORIES.length))
    if (usual.size === 0) return usual
    for (let i = 0; i < trace.count; i++) {
      const sums = trace.action(i) === ACTION.alloc ? usual.get(trace.stack(i)) : undefined
      if (sums === undefined || this.#lifetimes.endOf(i) === trace.count) continue
      const category = CATEGORIES.indexOf(this.#byLife(i) ?? 'unknown')
      sums[category] = (sums[category] as number) + trace.size(i)
    }
    return usual
  }

  /** Each parameter has a gradient and optimizer state of its own size. */
  #sizesOfParameters(): Set<number> {
    const { early, trace } = this.#lifetimes
    const sizes = new Set<number>()
    const take = (stack: number, size: number) => {
      const { phase, isStateSetup } = this.#traits.of(stack)
      if (stack !== EMPTY_STACK && (isStateSetup || phase === 'backward')) sizes.add(size)
    }
    for (let i = 0; i < early.sizes.length; i++)
      if (early.freedAt[i] === trace.count) take(early.stacks[i] as number, early.sizes[i] as number)
    for (let i = 0; i < trace.count; i++)
      if (trace.action(i) === ACTION.alloc && this.#lifetimes.endOf(i) === trace.count) take(trace.stack(i), trace.size(i))
    return sizes
  }
}

/** C++ frames were not recorded. */
function hasPythonStacksOnly({ trace }: Lifetimes, words: StackWordsTable): boolean {
  const seen = new Set<number>()
  for (let i = 0; i < trace.count; i++) {
    const stack = trace.stack(i)
    if (stack === NO_STACK || stack === EMPTY_STACK || seen.has(stack)) continue
    seen.add(stack)
    if (words.framesOf(stack).some(({ isPython }) => !isPython)) return false
  }
  return seen.size > 0
}
