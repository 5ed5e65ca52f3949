/** What a single frame of a stack is: Python or C++, the person's own code or somebody else's, an operator. */
import { isOwnFile } from '../../core/memory/oom-report.ts'
import type { SnapshotTables } from '../read/snapshot-tables.ts'

export interface FrameWords {
  readonly name: string
  readonly file: string
  readonly line: number
  readonly isPython: boolean
  /** Not of an installed package, of PyTorch itself or of generated code. */
  readonly isOwn: boolean
}

const CPP_FILE = /\.(?:cpp|cc|cxx|c|h|hpp|cu|cuh)$/i
/** PyTorch's own tree, wherever it lies: installed from a checkout it is in no site-packages. */
const TORCH_FILE =
  /(?:^|[\\/])torch[\\/](?:nn|optim|autograd|utils|cuda|xpu|mtia|distributed|amp|jit|fx|_\w+|functional|library|random|serialization)(?:[\\/.]|$)/
const GENERATED_FILE = /^<|[\\/]torchinductor(?:_[^\\/]*)?[\\/]/

export class FrameWordsTable {
  readonly #tables: SnapshotTables
  readonly #known: (FrameWords | undefined)[] = []

  constructor(tables: SnapshotTables) {
    this.#tables = tables
  }

  of(frame: number): FrameWords {
    const known = this.#known[frame]
    if (known) return known
    const { frames, texts } = this.#tables
    const name = texts.text(frames.names[frame] ?? 0)
    const file = texts.text(frames.files[frame] ?? 0)
    const line = frames.lines[frame] ?? 0
    const isPython = isPythonFile(file, line)
    const made = { name, file, line, isPython, isOwn: isPython && isOwnCode(file) }
    this.#known[frame] = made
    return made
  }
}

function isPythonFile(file: string, line: number): boolean {
  if (/\.pyx?$/.test(file) || (file.startsWith('<') && file.endsWith('>'))) return true
  return line > 0 && file !== '' && file !== '??' && !CPP_FILE.test(file)
}

function isOwnCode(file: string): boolean {
  return isOwnFile(file) && !TORCH_FILE.test(file) && !GENERATED_FILE.test(file)
}

/** `mul` of `at::_ops::mul_Tensor::call(…)`; null: the frame is no operator's. */
export function operatorOf(name: string): string | null {
  const found = /(?:^|\s)at::_ops::(\w+?)::/.exec(name)
  return found?.[1]?.replace(/(?:_(?:Tensor|Scalar|memory_format|dim|int|default))+$/, '') ?? null
}

/** `MulBackward0` of `torch::autograd::generated::MulBackward0::apply(…)`; null: the frame is no node's. */
export function backwardNodeOf(name: string): string | null {
  return /torch::autograd::(?:generated::)?(\w*(?:Backward\d*|AccumulateGrad))::(?:apply|operator)/.exec(name)?.[1] ?? null
}
