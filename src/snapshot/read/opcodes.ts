/** The opcodes of Python's pickle format: which of them a memory snapshot needs, and which are refused because they import, call or name something. */

/** Opcode → bytes of fixed length that follow it. What is not listed here is refused. */
const READ: readonly (readonly [code: number, name: string, argumentBytes: number])[] = [
  [0x28, 'MARK', 0],
  [0x29, 'EMPTY_TUPLE', 0],
  [0x2e, 'STOP', 0],
  [0x30, 'POP', 0],
  [0x31, 'POP_MARK', 0],
  [0x32, 'DUP', 0],
  [0x42, 'BINBYTES', 4],
  [0x43, 'SHORT_BINBYTES', 1],
  [0x47, 'BINFLOAT', 8],
  [0x4a, 'BININT', 4],
  [0x4b, 'BININT1', 1],
  [0x4d, 'BININT2', 2],
  [0x4e, 'NONE', 0],
  [0x58, 'BINUNICODE', 4],
  [0x5d, 'EMPTY_LIST', 0],
  [0x61, 'APPEND', 0],
  [0x64, 'DICT', 0],
  [0x65, 'APPENDS', 0],
  [0x68, 'BINGET', 1],
  [0x6a, 'LONG_BINGET', 4],
  [0x6c, 'LIST', 0],
  [0x71, 'BINPUT', 1],
  [0x72, 'LONG_BINPUT', 4],
  [0x73, 'SETITEM', 0],
  [0x74, 'TUPLE', 0],
  [0x75, 'SETITEMS', 0],
  [0x7d, 'EMPTY_DICT', 0],
  [0x80, 'PROTO', 1],
  [0x85, 'TUPLE1', 0],
  [0x86, 'TUPLE2', 0],
  [0x87, 'TUPLE3', 0],
  [0x88, 'NEWTRUE', 0],
  [0x89, 'NEWFALSE', 0],
  [0x8a, 'LONG1', 1],
  [0x8b, 'LONG4', 4],
  [0x8c, 'SHORT_BINUNICODE', 1],
  [0x8d, 'BINUNICODE8', 8],
  [0x94, 'MEMOIZE', 0],
  [0x95, 'FRAME', 8],
]

const REFUSED: readonly (readonly [code: number, name: string, why: string])[] = [
  [0x63, 'GLOBAL', 'imports something'],
  [0x93, 'STACK_GLOBAL', 'imports something'],
  [0x69, 'INST', 'imports and calls something'],
  [0x52, 'REDUCE', 'calls something'],
  [0x62, 'BUILD', 'sets the state of an object'],
  [0x6f, 'OBJ', 'makes an object'],
  [0x81, 'NEWOBJ', 'makes an object'],
  [0x92, 'NEWOBJ_EX', 'makes an object'],
  [0x50, 'PERSID', 'refers to something outside the file'],
  [0x51, 'BINPERSID', 'refers to something outside the file'],
  [0x82, 'EXT1', 'imports something'],
  [0x83, 'EXT2', 'imports something'],
  [0x84, 'EXT4', 'imports something'],
  [0x97, 'NEXT_BUFFER', 'refers to something outside the file'],
  [0x98, 'READONLY_BUFFER', 'refers to something outside the file'],
  [0x46, 'FLOAT', 'is of the text protocol'],
  [0x49, 'INT', 'is of the text protocol'],
  [0x4c, 'LONG', 'is of the text protocol'],
  [0x53, 'STRING', 'is of the text protocol'],
  [0x56, 'UNICODE', 'is of the text protocol'],
  [0x67, 'GET', 'is of the text protocol'],
  [0x70, 'PUT', 'is of the text protocol'],
  [0x54, 'BINSTRING', 'is of Python 2'],
  [0x55, 'SHORT_BINSTRING', 'is of Python 2'],
  [0x8e, 'BINBYTES8', 'is in no memory snapshot'],
  [0x8f, 'EMPTY_SET', 'is in no memory snapshot'],
  [0x90, 'ADDITEMS', 'is in no memory snapshot'],
  [0x91, 'FROZENSET', 'is in no memory snapshot'],
  [0x96, 'BYTEARRAY8', 'is in no memory snapshot'],
]

/** By opcode; 255 where it is not read at all. */
export const ARGUMENT_BYTES = new Uint8Array(256).fill(255)
for (const [code, , bytes] of READ) ARGUMENT_BYTES[code] = bytes

const NAMES = new Map(READ.map(([code, name]) => [code, name] as const))
const REASONS = new Map(REFUSED.map(([code, name, why]) => [code, { name, why }] as const))

export function opcodeName(code: number): string {
  return NAMES.get(code) ?? REASONS.get(code)?.name ?? `0x${code.toString(16).padStart(2, '0')}`
}

/** The file is not one that can be read; `offset` is that of the opcode, after gunzip. */
export class PickleFault extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.name = 'PickleFault'
    this.offset = offset
  }
}

export function refusal(code: number, offset: number): PickleFault {
  const known = REASONS.get(code)
  return new PickleFault(
    known
      ? `opcode ${known.name} at byte ${offset} ${known.why}: it was not run`
      : `byte ${offset} is 0x${code.toString(16).padStart(2, '0')}, which is no pickle opcode`,
    offset,
  )
}
