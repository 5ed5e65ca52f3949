/** Finds and loads the driver's library. koffi itself is loaded here, and only when there is a library to open. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type Koffi from 'koffi'
import { DriverFault, type SourceEnv } from '../../core/source-contract.ts'
import type { ReadFile } from '../kernel-log.ts'
import { CODE, initFault } from './codes.ts'
import { foreignArchitecture } from './elf.ts'
import { type Parameter, SYMBOLS, type SymbolName } from './symbols.ts'

/** Returns nvmlReturn_t. Handles are addresses, buffers are filled by the driver. */
export type NvmlFunction = (...values: readonly (bigint | number | Uint8Array | null)[]) => number

export interface Nvml {
  readonly path: string
  /** null: this driver does not have it. */
  readonly functions: Readonly<Record<SymbolName, NvmlFunction | null>>
  /** The system's read(): how many bytes, or what failed as a negative number. Node's own throws, which takes longer than the reading. */
  readonly readFile: ReadFile
}

const NATIVE_TYPES: Readonly<Record<Parameter, string>> = {
  handle: 'void *',
  buffer: 'void *',
  int: 'int32_t',
  uint: 'uint32_t',
  uint64: 'uint64_t',
}

/** What the dynamic linker finds, then where WSL, NixOS and GKE keep it. */
const LINKED_NAMES = ['libnvidia-ml.so.1', 'libnvidia-ml.so']
const WSL_PATH = 'usr/lib/wsl/lib/libnvidia-ml.so.1'
const OTHER_PATHS = [WSL_PATH, 'run/opengl-driver/lib/libnvidia-ml.so.1', 'usr/local/nvidia/lib64/libnvidia-ml.so.1']
/** The GPU of Windows, as WSL passes it on. */
const WSL_DEVICE = 'dev/dxg'

/** Under WSL the library of Windows comes first: one that a package brought there is for a kernel module that WSL does not have. */
export function libraryNames(root: string): readonly string[] {
  const isWsl = existsSync(join(root, WSL_DEVICE))
  // The linker knows nothing of a tree of files that stands for another system.
  const linked = root === '/' ? LINKED_NAMES : []
  return [...(isWsl ? [join(root, WSL_PATH)] : []), ...linked, ...OTHER_PATHS.map((path) => join(root, path))]
}

/** Device files and folders that only the driver makes. */
const DRIVER_TRACES = ['proc/driver/nvidia', 'dev/nvidiactl']

export function hasDriver(root: string): boolean {
  return DRIVER_TRACES.some((path) => existsSync(join(root, path)))
}

/** Whether a search for the library is worth loading koffi: a driver, a card, or WSL's GPU device. */
function mayHaveLibrary(env: SourceEnv, cards: number): boolean {
  return cards > 0 || hasDriver(env.root) || existsSync(join(env.root, WSL_DEVICE))
}

export function explicitLibrary(env: SourceEnv): string | null {
  return env.options.nvmlPath || env.env.GPUWARDEN_NVML || null
}

/** null: there is no library here and nothing that would need one. */
export async function openLibrary(env: SourceEnv, cards: number): Promise<Nvml | null> {
  const explicit = explicitLibrary(env)
  if (explicit !== null) {
    if (explicit.includes('/') && !existsSync(explicit))
      throw new DriverFault(
        'no_library',
        `NVIDIA: there is no library at ${explicit}: correct GPUWARDEN_NVML or nvml, or remove it to search the system`,
      )
    const koffi = await loadKoffi()
    try {
      return load(koffi, explicit)
    } catch (cause) {
      throw unusable(explicit, cause)
    }
  }
  if (!mayHaveLibrary(env, cards)) return null
  const koffi = await loadKoffi()
  const faults: string[] = []
  for (const name of new Set(libraryNames(env.root))) {
    try {
      return load(koffi, name)
    } catch (fault) {
      const message = messageOf(fault)
      const foreign = foreignArchitecture(name)
      if (foreign !== null) faults.push(`${name} is for ${foreign}, and this program runs on ${process.arch}`)
      else if (!message.includes('No such file')) faults.push(`${name}: ${message}`)
    }
  }
  if (faults.length === 0 && !hasDriver(env.root)) return null
  const found = faults.length > 0 ? `the library is there but cannot be loaded (${faults.join('; ')})` : 'libnvidia-ml.so.1 was not found'
  throw new DriverFault(
    'no_library',
    `NVIDIA: the driver is here, but ${found}: install the driver's user-space libraries (package libnvidia-compute or nvidia-driver-libs); in a container set NVIDIA_DRIVER_CAPABILITIES=utility,compute; or name the file in GPUWARDEN_NVML`,
  )
}

function unusable(path: string, cause: unknown): DriverFault {
  // The linker says "No such file" of a library for another machine.
  const foreign = foreignArchitecture(path)
  if (foreign !== null)
    return new DriverFault(
      'wrong_architecture',
      `NVIDIA: ${path} is for ${foreign}, and this program runs on ${process.arch}: name the libnvidia-ml.so.1 for ${process.arch}`,
      { cause },
    )
  return new DriverFault(
    'no_library',
    `NVIDIA: ${path} cannot be loaded as a library (${messageOf(cause)}): give the path of a libnvidia-ml.so.1`,
    { cause },
  )
}

async function loadKoffi(): Promise<typeof Koffi> {
  try {
    return (await import('koffi')).default
  } catch (cause) {
    throw new DriverFault(
      'no_library',
      `NVIDIA: koffi, which calls the driver's library, does not load (${messageOf(cause).split('\n')[0]}): install gpuwarden again on this machine, with optional packages`,
      { cause },
    )
  }
}

function load(koffi: typeof Koffi, path: string): Nvml {
  const library = koffi.load(path)
  const functions = {} as Record<SymbolName, NvmlFunction | null>
  for (const [name, parameters] of Object.entries(SYMBOLS) as [SymbolName, readonly Parameter[]][]) {
    try {
      functions[name] = library.func(
        name,
        'int32_t',
        parameters.map((one) => NATIVE_TYPES[one]),
      ) as unknown as NvmlFunction
    } catch {
      functions[name] = null
    }
  }
  if (functions.nvmlInit_v2 === null || functions.nvmlDeviceGetCount_v2 === null || functions.nvmlDeviceGetHandleByIndex_v2 === null)
    throw new Error('it has no nvmlInit_v2, nvmlDeviceGetCount_v2 or nvmlDeviceGetHandleByIndex_v2, so it is not NVML')
  const read = koffi.load(null).func('read', 'int64_t', ['int32_t', 'void *', 'size_t'])
  const readFile: ReadFile = (file, into) => {
    const length = Number(read(file, into, into.length))
    return length < 0 ? -koffi.errno() : length
  }
  return { path, functions, readFile }
}

/** false: the driver is not loaded and has left no trace, so there is nothing to watch. */
export function initialize(nvml: Nvml, root: string, mustWork: boolean): boolean {
  const code = nvml.functions.nvmlInit_v2?.() ?? CODE.functionNotFound
  if (code === CODE.ok) return true
  if (code === CODE.driverNotLoaded && !mustWork && !hasDriver(root)) return false
  throw initFault(code, nvml.path)
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault)
}
