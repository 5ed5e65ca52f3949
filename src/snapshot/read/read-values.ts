/** A small pickle file of plain values. Nothing in it is run or imported. */
import { open } from 'node:fs/promises'
import { PickleFault } from './opcodes.ts'
import { PickleMachine } from './pickle-machine.ts'
import { type PlainValue, ValueBuilder } from './value-builder.ts'
import { ValueStack } from './value-stack.ts'

export const MOST_FILE_BYTES = 256 * 1024 ** 2

/** Throws a PickleFault where it is none, is cut, or imports something. */
export function valuesOf(bytes: Uint8Array): PlainValue {
  const stack = new ValueStack()
  const builder = new ValueBuilder(stack)
  const machine = new PickleMachine(stack, builder)
  machine.write(bytes)
  machine.end()
  if (!machine.isWhole) throw new PickleFault(`the file ends at byte ${machine.offset}, before the end of the pickle`, machine.offset)
  return builder.valueAt(0)
}

export async function readValues(path: string): Promise<PlainValue> {
  const file = await open(path)
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new PickleFault('it is no file', 0)
    if (stat.size > MOST_FILE_BYTES) throw new PickleFault(`it has ${stat.size} bytes, more than ${MOST_FILE_BYTES}`, 0)
    return valuesOf(await file.readFile())
  } finally {
    await file.close()
  }
}
