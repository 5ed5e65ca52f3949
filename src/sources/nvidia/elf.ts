/** For which machine a library was built, from the head of its file. */
import { isAbsolute } from 'node:path'
import { smallBuffer, tryReadSmallFile } from '../small-file.ts'

/** e_machine of the ELF header, as Node names the architecture. */
const MACHINES: ReadonlyMap<number, string> = new Map([
  [3, 'ia32'],
  [21, 'ppc64'],
  [22, 's390x'],
  [40, 'arm'],
  [62, 'x64'],
  [183, 'arm64'],
  [243, 'riscv64'],
])
const HEADER_BYTES = 20
const MAGIC = 0x7f454c46
const BIG_ENDIAN = 2

/** null: it is for this machine, or no library that could be read. */
export function foreignArchitecture(path: string): string | null {
  if (!isAbsolute(path)) return null
  smallBuffer.fill(0, 0, HEADER_BYTES)
  if (tryReadSmallFile(path, HEADER_BYTES) === null || smallBuffer.readUInt32BE(0) !== MAGIC) return null
  const machine = smallBuffer[5] === BIG_ENDIAN ? smallBuffer.readUInt16BE(18) : smallBuffer.readUInt16LE(18)
  const name = MACHINES.get(machine) ?? `machine type ${machine}`
  return name === process.arch ? null : name
}
