/**
 * Runs the opcodes of a pickle that comes in pieces. It builds no objects, calls nothing and imports nothing: dicts and lists go to
 * the builder as soon as they are filled. Every count that a file can set is bounded.
 */
import { float64, int32, signed, uint32, uint64 } from './bytes.ts'
import { closeOpen } from './cut-file.ts'
import { Memo } from './memo.ts'
import { ARGUMENT_BYTES, opcodeName, PickleFault, refusal } from './opcodes.ts'
import type { ListShortcut, PickleBuilder } from './pickle-builder.ts'
import { BOOL, DICT, isList, isRun, KIND_MASK, LIST, NUMBER, OTHER, RECORD, STACK, TEXT, token } from './tokens.ts'
import type { ValueStack } from './value-stack.ts'

const MOST_TEXT_BYTES = 16 * 1024 ** 2
const MOST_INTEGER_BYTES = 16
/** More than any opcode with its argument of fixed length. */
const SLACK = 32

export class PickleMachine {
  /** Bytes that the opcodes so far took, after gunzip. */
  offset = 0
  /** STOP was reached. */
  isWhole = false
  readonly #builder: PickleBuilder
  readonly #stack: ValueStack
  readonly #memo = new Memo()
  readonly #lists: ListShortcut
  /** What came; the first `#held` bytes of it are not read yet. It is used again, so that a large file leaves no garbage. */
  #buffer = new Uint8Array(0)
  #held = 0

  constructor(stack: ValueStack, builder: PickleBuilder) {
    this.#stack = stack
    this.#builder = builder
    this.#lists = builder.shortcut(this.#memo)
  }

  write(chunk: Uint8Array): void {
    if (this.isWhole) return
    const length = this.#held + chunk.length
    if (length > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(length, Math.min(2 * this.#buffer.length, length + MOST_TEXT_BYTES)))
      grown.set(this.#buffer.subarray(0, this.#held))
      this.#buffer = grown
    }
    this.#buffer.set(chunk, this.#held)
    const used = this.#run(this.#buffer, length, false)
    this.offset += used
    this.#builder.check(this.offset)
    this.#buffer.copyWithin(0, used, length)
    this.#held = length - used
  }

  /** After the last piece. Where the file ends too early, what was whole is in the tables. */
  end(): void {
    if (!this.isWhole) this.offset += this.#run(this.#buffer, this.#held, true)
    if (!this.isWhole) closeOpen(this.#stack, this.#builder)
    this.#held = 0
    this.#buffer = new Uint8Array(0)
    this.#memo.clear()
  }

  /** Gives how many bytes it took: whole opcodes only. One function with its state in variables, because it runs a hundred million times. */
  #run(buffer: Uint8Array, end: number, isLast: boolean): number {
    const [stack, memo, lists, builder] = [this.#stack, this.#memo, this.#lists, this.#builder]
    let { tokens, numbers, slots, top } = stack
    const safe = isLast ? end : end - SLACK
    let pos = 0
    let at = 0
    for (; pos < safe; ) {
      at = pos
      const op = buffer[pos++] as number
      const offset = this.offset + at
      const argument = pos
      pos += ARGUMENT_BYTES[op] as number
      if (isLast && pos > end && ARGUMENT_BYTES[op] !== 255) {
        stack.top = top
        return at
      }
      if (top + 1 >= tokens.length) {
        stack.grow(offset)
        ;({ tokens, numbers, slots } = stack)
      }
      switch (op) {
        case 0x68: // BINGET
        case 0x6a: {
          // LONG_BINGET
          const index = op === 0x68 ? (buffer[argument] as number) : uint32(buffer, argument)
          if (index >= memo.count)
            throw new PickleFault(`${opcodeName(op)} at byte ${offset} refers to memo entry ${index} of ${memo.count}`, offset)
          const value = memo.get(index)
          tokens[top] = value
          if ((value & KIND_MASK) === NUMBER) numbers[top] = memo.numberAt(index)
          slots[top++] = 0
          break
        }
        case 0x4b: // BININT1
          tokens[top] = NUMBER
          numbers[top++] = buffer[argument] as number
          break
        case 0x4d: // BININT2
          tokens[top] = NUMBER
          numbers[top++] = (buffer[argument] as number) | ((buffer[argument + 1] as number) << 8)
          break
        case 0x4a: // BININT
          tokens[top] = NUMBER
          numbers[top++] = int32(buffer, argument)
          break
        case 0x47: // BINFLOAT
          tokens[top] = NUMBER
          numbers[top++] = float64(buffer, argument)
          break
        case 0x8a: // LONG1
        case 0x8b: // LONG4
        case 0x8c: // SHORT_BINUNICODE
        case 0x58: // BINUNICODE
        case 0x8d: // BINUNICODE8
        case 0x43: // SHORT_BINBYTES
        case 0x42: {
          // BINBYTES
          const width = pos - argument
          const length = width === 1 ? (buffer[argument] as number) : width === 4 ? uint32(buffer, argument) : uint64(buffer, argument)
          const isInteger = op === 0x8a || op === 0x8b
          if (length > (isInteger ? MOST_INTEGER_BYTES : MOST_TEXT_BYTES))
            throw new PickleFault(`${opcodeName(op)} at byte ${offset} has a length of ${length}`, offset)
          const from = pos
          pos += length
          if (pos > end) {
            stack.top = top
            return at
          }
          if (isInteger) {
            tokens[top] = NUMBER
            numbers[top++] = signed(buffer, from, length)
          } else tokens[top++] = op === 0x43 || op === 0x42 ? OTHER : token(TEXT, builder.texts.intern(buffer, from, pos))
          break
        }
        case 0x94: // MEMOIZE
        case 0x71: // BINPUT
        case 0x72: {
          // LONG_BINPUT
          const index = op === 0x94 ? memo.count : op === 0x71 ? (buffer[argument] as number) : uint32(buffer, argument)
          if (index !== memo.count)
            throw new PickleFault(`${opcodeName(op)} at byte ${offset} writes memo entry ${index}; the next is ${memo.count}`, offset)
          if (top === 0) throw underflow(op, offset)
          memo.check(offset)
          const value = tokens[top - 1] as number
          const kind = value & KIND_MASK
          if (kind === DICT || kind === LIST) slots[top - 1] = index + 1
          memo.add(isRun(kind) ? OTHER : value, numbers[top - 1] as number)
          break
        }
        case 0x7d: // EMPTY_DICT
          tokens[top] = DICT
          slots[top++] = 0
          break
        case 0x5d: {
          // EMPTY_LIST
          const known = lists.recognize(buffer, pos, end - SLACK)
          if (known >= 0) pos = lists.end
          tokens[top] = known < 0 ? LIST : known
          slots[top++] = 0
          break
        }
        case 0x28: // MARK
          stack.mark(top, offset)
          break
        case 0x75: // SETITEMS
        case 0x73: {
          // SETITEM
          const from = op === 0x75 ? stack.popMark(op, offset) : top - 2
          const dict = from - 1
          const kind = dict < stack.floor ? OTHER : (tokens[dict] as number) & KIND_MASK
          if ((kind !== DICT && kind !== RECORD) || (top - from) % 2 !== 0)
            throw new PickleFault(`${opcodeName(op)} at byte ${offset} does not follow a dict, its keys and its values`, offset)
          builder.fillDict(dict, from, top)
          const made = tokens[dict] as number
          if (slots[dict] !== 0) memo.set((slots[dict] as number) - 1, isRun(made & KIND_MASK) ? OTHER : made)
          top = stack.merge(dict)
          break
        }
        case 0x65: // APPENDS
        case 0x61: {
          // APPEND
          const from = op === 0x65 ? stack.popMark(op, offset) : top - 1
          const list = from - 1
          if (list < stack.floor || !isList((tokens[list] as number) & KIND_MASK))
            throw new PickleFault(`${opcodeName(op)} at byte ${offset} does not follow a list and its items`, offset)
          builder.fillList(list, from, top)
          const made = tokens[list] as number
          if (slots[list] !== 0) memo.set((slots[list] as number) - 1, (made & KIND_MASK) === STACK ? made : OTHER)
          top = list + 1
          break
        }
        case 0x88: // NEWTRUE
        case 0x89: // NEWFALSE
          tokens[top++] = token(BOOL, op === 0x88 ? 1 : 0)
          break
        case 0x4e: // NONE
        case 0x29: // EMPTY_TUPLE
          tokens[top++] = OTHER
          break
        case 0x85: // TUPLE1
        case 0x86: // TUPLE2
        case 0x87: // TUPLE3
        case 0x74: {
          // TUPLE
          const from = op === 0x74 ? stack.popMark(op, offset) : top - (op - 0x84)
          if (from < stack.floor) throw underflow(op, offset)
          builder.tuple(from, from, top)
          top = from + 1
          break
        }
        case 0x64: // DICT
        case 0x6c: {
          // LIST
          const from = stack.popMark(op, offset)
          tokens.copyWithin(from + 1, from, top)
          numbers.copyWithin(from + 1, from, top)
          tokens[from] = op === 0x64 ? DICT : LIST
          slots[from] = 0
          if (op === 0x64) builder.fillDict(from, from + 1, top + 1)
          else builder.fillList(from, from + 1, top + 1)
          top = op === 0x64 ? stack.merge(from) : from + 1
          break
        }
        case 0x95: // FRAME
          break
        case 0x80: {
          // PROTO
          const protocol = buffer[argument] as number
          if (protocol < 2 || protocol > 5) throw new PickleFault(`pickle protocol ${protocol}: expected 2 to 5`, offset)
          break
        }
        case 0x30: // POP
          if (top <= stack.floor) throw underflow(op, offset)
          top--
          break
        case 0x31: // POP_MARK
          top = stack.popMark(op, offset)
          break
        case 0x32: // DUP
          if (top <= stack.floor) throw underflow(op, offset)
          tokens[top] = tokens[top - 1] as number
          numbers[top] = numbers[top - 1] as number
          slots[top++] = 0
          break
        case 0x2e: // STOP
          if (top !== 1 || stack.markCount > 0) throw new PickleFault(`STOP at byte ${offset} with ${top} values left; expected 1`, offset)
          stack.top = top
          this.isWhole = true
          return pos
        default:
          throw refusal(op, offset)
      }
    }
    stack.top = top
    return pos
  }
}

function underflow(opcode: number, offset: number): PickleFault {
  return new PickleFault(`${opcodeName(opcode)} at byte ${offset} has nothing to work on`, offset)
}
