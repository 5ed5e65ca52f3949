/** A stack in words: the line of the person's own code, the module, the operator, and the folded form in which equal stacks are one. */
import { type CodePlace, placeText } from '../../core/memory/oom-report.ts'
import type { SnapshotTables } from '../read/snapshot-tables.ts'
import { EMPTY_STACK, NO_STACK } from '../read/stack-table.ts'
import { backwardNodeOf, type FrameWords, FrameWordsTable, operatorOf } from './frames.ts'

export interface StackWords {
  /** Innermost line of the person's own code. */
  readonly own: CodePlace | null
  /** Innermost line of Python, anybody's. */
  readonly python: CodePlace | null
  /** What was called last: an operator, or a node of the backward pass. */
  readonly operator: string | null
  /** It ran on a thread of the autograd engine. */
  readonly isAutograd: boolean
  /** The chain of modules whose `forward` it was in, outermost first; null outside of any. */
  readonly module: string | null
  /** Outermost first; equal for stacks that differ in nothing that matters. */
  readonly folded: readonly string[]
  /** How it is called in a list: the own line, or else the best that is known. */
  readonly label: string
}

const ENGINE = /^torch::autograd::(?:python::Python)?Engine::|^torch::autograd::Engine/
const MOST_KEPT = 1 << 17

export class StackWordsTable {
  readonly #tables: SnapshotTables
  readonly frames: FrameWordsTable
  readonly #known = new Map<number, StackWords>()

  constructor(tables: SnapshotTables) {
    this.#tables = tables
    this.frames = new FrameWordsTable(tables)
  }

  of(stack: number): StackWords {
    const known = this.#known.get(stack)
    if (known) return known
    const made = wordsOf(this.framesOf(stack), stack)
    if (this.#known.size < MOST_KEPT) this.#known.set(stack, made)
    return made
  }

  /** Innermost first. */
  framesOf(stack: number): FrameWords[] {
    return [...this.#tables.stacks.frames(stack)].map((frame) => this.frames.of(frame))
  }
}

function wordsOf(frames: readonly FrameWords[], stack: number): StackWords {
  const python = frames.filter((frame) => frame.isPython)
  const own = python.find((frame) => frame.isOwn) ?? null
  const isAutograd = frames.some((frame) => !frame.isPython && ENGINE.test(frame.name))
  const operator = operatorIn(frames)
  const node = isAutograd ? nodeIn(frames) : null
  const words = {
    own: own && placeOf(own),
    python: python[0] ? placeOf(python[0]) : null,
    operator: node ?? operator,
    isAutograd,
    module: moduleIn(python),
  }
  const tail = [...new Set([node, operator])].filter((part): part is string => part !== null)
  const calls = python
    .filter((frame) => !isModuleCall(frame))
    .map((frame) => `${frame.name} (${frame.file}:${frame.line})`)
    .reverse()
  const folded = [...(isAutograd ? ['autograd'] : []), ...calls, ...tail]
  return { ...words, folded: folded.length > 0 ? folded : [nameless(stack)], label: labelOf(words, stack, frames.length) }
}

function labelOf({ own, python, operator, isAutograd }: Omit<StackWords, 'folded' | 'label'>, stack: number, frameCount: number): string {
  if (own) return placeText(own)
  if (isAutograd) return `backward: ${operator ?? 'autograd'}`
  if (python) return placeText(python)
  if (operator) return `C++: ${operator}`
  return frameCount > 0 ? 'C++ only' : nameless(stack)
}

function nameless(stack: number): string {
  return stack === NO_STACK ? '(no stack recorded)' : stack === EMPTY_STACK ? '(no Python frames)' : '(C++ only)'
}

/** Of the calls between the allocator and the first line of Python, the outermost operator is the one that was asked for. */
function operatorIn(frames: readonly FrameWords[]): string | null {
  let found: string | null = null
  for (const { isPython, name } of frames) {
    if (isPython) break
    found = operatorOf(name) ?? found
  }
  return found
}

function nodeIn(frames: readonly FrameWords[]): string | null {
  for (const { isPython, name } of frames) {
    const node = isPython ? null : backwardNodeOf(name)
    if (node !== null) return node
  }
  return null
}

function moduleIn(python: readonly FrameWords[]): string | null {
  const chain: string[] = []
  for (const [index, frame] of python.entries()) {
    const method = frame.name.slice(frame.name.lastIndexOf('.') + 1)
    if (method === 'forward' && isCalledAsModule(python, index)) chain.push(moduleName(frame))
  }
  return chain.length > 0 ? chain.reverse().join(' > ') : null
}

/** Decorators may stand between a module's `forward` and the call of it. */
function isCalledAsModule(python: readonly FrameWords[], index: number): boolean {
  for (let i = index + 1; i < Math.min(python.length, index + 6); i++) {
    const { name, file } = python[i] as FrameWords
    if (isModuleCall({ name, file })) return true
    if (/(?:^|\.)forward$/.test(name)) return false
  }
  return false
}

/** What PyTorch puts between the call of a module and its `forward`. */
function isModuleCall({ name, file }: Pick<FrameWords, 'name' | 'file'>): boolean {
  return /(?:^|\.)(?:_call_impl|_wrapped_call_impl|inner)$/.test(name) && /nn[\\/]modules[\\/]module\.py$/.test(file)
}

/** The class where the name tells it, else file and line. */
function moduleName({ name, file, line }: FrameWords): string {
  const owner = name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : null
  return owner ?? `${file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1).replace(/\.py$/, '')}:${line}`
}

function placeOf({ file, line, name }: FrameWords): CodePlace {
  return { file, line: line > 0 ? line : null, function: name === '' ? null : name }
}
