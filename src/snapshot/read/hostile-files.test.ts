/** Files made to harm: they end in a clear error, in bounded time and memory, and nothing in them runs. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PickleWriter } from '../../../bench/snapshot/pickle-writer.mjs'
import { PickleFault } from './opcodes.ts'
import { SnapshotReader } from './read-snapshot.ts'
import { readBytes, recordedBytes, smallSnapshot } from './snapshot.fixture.ts'

const bytesOf = (...parts: (number | string | Uint8Array)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part as string))))

function faultOf(bytes: Uint8Array): PickleFault {
  try {
    readBytes(bytes)
  } catch (error) {
    expect(error).toBeInstanceOf(PickleFault)
    return error as PickleFault
  }
  throw new Error('it was read')
}

/** The same 64 KiB again and again, so that a file of gigabytes needs no disk. */
function flood(head: Uint8Array, again: Uint8Array, gigabytes: number): { fault: PickleFault; heldBytes: number } {
  const chunk = Buffer.concat(Array.from({ length: Math.ceil(65_536 / again.length) }, () => again))
  const before = process.memoryUsage()
  let most = 0
  const reader = new SnapshotReader()
  try {
    reader.write(head)
    for (let written = 0; written < gigabytes * 1024 ** 3; written += chunk.length) {
      reader.write(chunk)
      const { arrayBuffers, heapUsed } = process.memoryUsage()
      most = Math.max(most, arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed)
    }
    reader.end()
  } catch (error) {
    expect(error).toBeInstanceOf(PickleFault)
    return { fault: error as PickleFault, heldBytes: most }
  }
  throw new Error('it was read')
}

describe('opcodes that import, call or refer to something', () => {
  it.each([
    ['GLOBAL', 'c', 'os\nsystem\n'],
    ['STACK_GLOBAL', 0x93, ''],
    ['REDUCE', 'R', ''],
    ['BUILD', 'b', ''],
    ['INST', 'i', 'os\nsystem\n'],
    ['OBJ', 'o', ''],
    ['NEWOBJ', 0x81, ''],
    ['NEWOBJ_EX', 0x92, ''],
    ['PERSID', 'P', 'x\n'],
    ['BINPERSID', 'Q', ''],
    ['EXT1', 0x82, '\u0001'],
    ['EXT2', 0x83, '\u0001\u0001'],
    ['EXT4', 0x84, '\u0001\u0001\u0001\u0001'],
    ['NEXT_BUFFER', 0x97, ''],
    ['READONLY_BUFFER', 0x98, ''],
    ['INT', 'I', '1\n'],
    ['STRING', 'S', "'x'\n"],
    ['BYTEARRAY8', 0x96, ''],
  ])('%s is refused by name and offset', (name, opcode, argument) => {
    const whole = PickleWriter.bytes(smallSnapshot())
    const fault = faultOf(bytesOf(whole.subarray(0, -1), opcode, argument, '.'))
    expect(fault.message).toContain(`opcode ${name} at byte ${whole.length - 1} `)
    expect(fault.offset).toBe(whole.length - 1)
  })

  it('are refused where Python would run them', () => {
    const command = bytesOf(0x80, 4, 'cos\nsystem\n', 0x8c, 4, 'true', 0x85, 'R.')
    expect(faultOf(command).message).toMatch(/GLOBAL at byte 2 imports something: it was not run/)
  })

  it('are distinguished from what is no opcode at all', () => {
    expect(faultOf(bytesOf(0x80, 4, 0xff)).message).toMatch(/byte 2 is 0xff, which is no pickle opcode/)
    expect(faultOf(bytesOf(0x80, 9, '.')).message).toMatch(/protocol 9/)
  })
})

describe('wrong lengths and references', () => {
  it.each([
    ['a text of 4 GiB', bytesOf('X', 0xff, 0xff, 0xff, 0xff), /BINUNICODE at byte 2 has a length of 4294967295/],
    ['a text of 2^63 bytes', bytesOf(0x8d, new Uint8Array(7), 0x80), /BINUNICODE8 at byte 2 has a length of/],
    ['an integer of 255 bytes', bytesOf(0x8a, 0xff), /LONG1 at byte 2 has a length of 255/],
    ['an integer of 4 GiB', bytesOf(0x8b, 0xff, 0xff, 0xff, 0xff), /LONG4 at byte 2 has a length of/],
    ['bytes of 4 GiB', bytesOf('B', 0xff, 0xff, 0xff, 0xff), /BINBYTES at byte 2/],
    ['a reference to nothing', bytesOf('h', 0), /BINGET at byte 2 refers to memo entry 0 of 0/],
    ['a reference far away', bytesOf(']', 0x94, 'j', 0xff, 0xff, 0xff, 0x7f), /LONG_BINGET at byte 4 refers to memo entry 2147483647 of 1/],
    ['an entry far away', bytesOf(']', 'r', 0xff, 0xff, 0xff, 0x7f), /LONG_BINPUT at byte 3 writes memo entry 2147483647; the next is 0/],
    ['an entry written twice', bytesOf(']', 'q', 0, 'q', 0), /BINPUT at byte 5 writes memo entry 0; the next is 1/],
    ['SETITEMS without a MARK', bytesOf('}u'), /SETITEMS at byte 3 without a MARK/],
    ['a key without a value', bytesOf('}(K', 1, 'u'), /SETITEMS at byte 6 does not follow a dict/],
    ['SETITEM on nothing', bytesOf('s'), /SETITEM at byte 2 does not follow a dict/],
    ['SETITEM through a MARK', bytesOf('}(K', 1, 'K', 1, '(s'), /SETITEM at byte 9 does not follow a dict/],
    ['APPEND to a number', bytesOf('K', 1, 'K', 1, 'a'), /APPEND at byte 6 does not follow a list/],
    ['TUPLE2 of one', bytesOf('K', 1, 0x86), /TUPLE2 at byte 4 has nothing to work on/],
    ['POP of nothing', bytesOf('0'), /POP at byte 2 has nothing/],
    ['MEMOIZE of nothing', bytesOf(0x94), /MEMOIZE at byte 2 has nothing/],
    ['STOP with nothing', bytesOf('.'), /STOP at byte 2 with 0 values left/],
    ['STOP inside a list', bytesOf('](.'), /STOP at byte 4/],
  ])('%s', (_, bytes, message) => {
    // Long enough that the reader does not wait for more of it.
    expect(faultOf(bytesOf(0x80, 4, bytes, new Uint8Array(64).fill(0x4e))).message).toMatch(message)
  })
})

describe('floods', () => {
  const MIB = 1024 ** 2

  it('nesting ends at its bound', () => {
    expect(faultOf(bytesOf(0x80, 4, '](]'.repeat(2000))).message).toMatch(/nested more than 1000 deep/)
    expect(faultOf(bytesOf(0x80, 4, '}(K\u0001'.repeat(2000))).message).toMatch(/nested more than 1000 deep/)
  })

  it.each([
    ['2 GiB of memo entries', ']\u0094', /memo entries/, 128],
    ['2 GiB of values', 'N', /values wait on the stack/, 128],
    ['2 GiB of lists that refer to each other', '](]e\u0094', /memo entries/, 128],
  ])('%s', (_, again, message, mebibytes) => {
    const { fault, heldBytes } = flood(bytesOf(0x80, 4), Buffer.from(again, 'latin1'), 2)
    expect(fault.message).toMatch(message)
    expect(heldBytes).toBeLessThan(mebibytes * MIB)
  })

  it('events and frames that are hardly any bytes are refused, too', () => {
    const key = (name: string) => bytesOf(0x8c, name.length, name, 0x94)
    const events = flood(bytesOf(0x80, 4, key('action'), key('alloc'), ']('), bytesOf('}(h', 0, 'h', 1, 'u'), 2)
    expect(events.fault.message).toMatch(/events and blocks in \d+ bytes: more than a memory snapshot has/)
    expect(events.heldBytes).toBeLessThan(128 * MIB)
    const ooms = flood(bytesOf(0x80, 4, key('action'), key('oom'), ']('), bytesOf('}(h', 0, 'h', 1, 'u'), 2)
    expect(ooms.heldBytes).toBeLessThan(256 * MIB)
    const reader = new SnapshotReader()
    reader.write(bytesOf(0x80, 4, key('filename'), key('line'), key('total_size')))
    // Each frame is taken away again, so that only the table of frames grows.
    const record = bytesOf('}(h', 0, 'h', 0, 'h', 1, 'J', new Uint8Array(4), 'u0')
    const line = record.indexOf('J') + 1
    const chunk = Buffer.concat(Array.from({ length: 65_536 }, () => record))
    const different = () => {
      for (let i = 0; ; i++) {
        for (let j = 0; j < 65_536; j++) chunk.writeInt32LE(i * 65_536 + j, j * record.length + line)
        reader.write(chunk)
      }
    }
    expect(different).toThrow(/more than 1048576 frames at byte/)
  })

  it('different texts are kept up to a bound, and the rest counted', () => {
    const reader = new SnapshotReader()
    reader.write(bytesOf(0x80, 4))
    const text = Buffer.alloc(9)
    text[0] = 0x8c
    text[1] = 6
    text[8] = 0x30
    for (let i = 0; i < 70; i++) {
      const chunk = Buffer.alloc(65_536 * 9)
      for (let j = 0; j < 65_536; j++) {
        text.writeUIntLE(i * 65_536 + j, 2, 6)
        text.copy(chunk, j * 9)
      }
      reader.write(chunk)
    }
    reader.write(PickleWriter.bytes(smallSnapshot()).subarray(2))
    const { tables } = reader.end()
    expect(tables.texts.count).toBeLessThanOrEqual(2 ** 22 + 1)
    expect(tables.texts.notKept).toBeGreaterThan(300_000)
    expect(tables.events.count).toBe(6)
  })
})

describe('damaged files', () => {
  it('give a fault or a snapshot, and nothing else, however they are damaged', () => {
    for (const whole of [recordedBytes('healthy').subarray(0, 60_000), PickleWriter.bytes(smallSnapshot(), { writer: 'cpp' })])
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
          fc.nat(whole.length),
          (changes, cut) => {
            const bytes = Buffer.from(whole)
            for (const [at, value] of changes) bytes[at] = value
            try {
              readBytes(bytes, [cut])
            } catch (error) {
              if (!(error instanceof PickleFault)) throw error
            }
          },
        ),
        { numRuns: 400 },
      )
  })

  it('so do random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readBytes(Buffer.concat([Buffer.from([0x80, 4]), bytes]))
        } catch (error) {
          if (!(error instanceof PickleFault)) throw error
        }
      }),
      { numRuns: 2000 },
    )
  })
})
