/** What the frames of a stack say about the purpose of what it allocates. */
import { EMPTY_STACK, NO_STACK } from '../read/stack-table.ts'
import type { FrameWords } from './frames.ts'
import type { StackWordsTable } from './stack-words.ts'

export type Phase = 'forward' | 'backward' | 'optimizer' | 'other'

export interface Traits {
  /** What the program was doing. */
  readonly phase: Phase
  readonly isCommunication: boolean
  readonly isInput: boolean
  /** A module is made, loaded or moved. */
  readonly isModuleSetup: boolean
  /** The optimizer makes its state. */
  readonly isStateSetup: boolean
  readonly isZeroGrad: boolean
}

const NO_TRAITS: Traits = {
  phase: 'other',
  isCommunication: false,
  isInput: false,
  isModuleSetup: false,
  isStateSetup: false,
  isZeroGrad: false,
}

const COMMUNICATION =
  /\bnccl|\brccl|c10d|ProcessGroup|[\\/]distributed[\\/](?:distributed_c10d|fsdp|_composable|algorithms)|\bfsdp|deepspeed[\\/]comm/i
const OPTIMIZER_FILE = /[\\/]optim(?:izers?)?[\\/]|[\\/]optimizers?\.py$|deepspeed[\\/]ops[\\/](?:adam|lamb|lion)/
const STATE_SETUP = /(?:^|\.)(?:_init_group|init_state|_init_state|initialize_state)$/
const INPUT =
  /[\\/]utils[\\/]data[\\/]|(?:^|\.)(?:collate\w*|pin_memory|move_to_device|to_device|send_to_device|batch_to_device|_prepare_inputs?|recursive_to)$/
const MODULE_FILE = /[\\/]nn[\\/]modules[\\/]module\.py$/
const MODULE_SETUP = /(?:^|\.)(?:_apply|to|cuda|xpu|load_state_dict|_load_from_state_dict|to_empty)$/
const LOADING =
  /(?:^|\.)(?:__init__|load_state_dict|from_pretrained|_load_pretrained_model|_load_state_dict_into_\w+|load_checkpoint|reset_parameters)$/
const BACKWARD = /(?:^|\.)(?:_engine_run_backward|run_backward|backward)$/
const ENGINE = /^torch::autograd::(?:python::Python)?Engine|^torch::autograd::Engine/

export class TraitsTable {
  readonly #words: StackWordsTable
  readonly #known = new Map<number, Traits>()
  /** In a file without C++ frames an event without frames comes from a thread without Python: the backward pass. */
  readonly #isEmptyBackward: boolean

  constructor(words: StackWordsTable, isEmptyBackward: boolean) {
    this.#words = words
    this.#isEmptyBackward = isEmptyBackward
  }

  of(stack: number): Traits {
    const known = this.#known.get(stack)
    if (known) return known
    const made = this.#make(stack)
    this.#known.set(stack, made)
    return made
  }

  #make(stack: number): Traits {
    if (stack === NO_STACK) return NO_TRAITS
    if (stack === EMPTY_STACK) return this.#isEmptyBackward ? { ...NO_TRAITS, phase: 'backward' } : NO_TRAITS
    const frames = this.#words.framesOf(stack)
    const python = frames.filter(({ isPython }) => isPython)
    const some = (pattern: RegExp) => python.some(({ name }) => pattern.test(name))
    const isForward = some(/(?:^|\.)forward$/) || python.some(({ name, file }) => /_call_impl$/.test(name) && MODULE_FILE.test(file))
    const isBackward = frames.some(({ isPython, name }) => (isPython ? BACKWARD.test(name) : ENGINE.test(name)))
    const isOptimizer = python.some(({ file }) => OPTIMIZER_FILE.test(file)) || some(STATE_SETUP)
    return {
      // Recomputed activations are made by `forward` inside the backward pass.
      phase: isForward ? 'forward' : isBackward ? 'backward' : isOptimizer ? 'optimizer' : 'other',
      isCommunication: frames.some(({ name, file }) => COMMUNICATION.test(file) || COMMUNICATION.test(name)),
      isInput: !isForward && python.some(({ name, file }) => INPUT.test(file) || INPUT.test(name)),
      isModuleSetup: !isForward && !isBackward && !isOptimizer && python.some(isSetup),
      isStateSetup: some(STATE_SETUP),
      isZeroGrad: some(/(?:^|\.)zero_grad$/),
    }
  }
}

function isSetup({ name, file }: FrameWords): boolean {
  return LOADING.test(name) || (MODULE_FILE.test(file) && MODULE_SETUP.test(name))
}
