/** NVML's return codes: what they mean in words, and what a person can do about them. */
import { DriverFault, type DriverFaultKind } from '../../core/source-contract.ts'

export const CODE = {
  ok: 0,
  uninitialized: 1,
  invalidArgument: 2,
  notSupported: 3,
  noPermission: 4,
  notFound: 6,
  insufficientSize: 7,
  driverNotLoaded: 9,
  timeout: 10,
  libraryNotFound: 12,
  functionNotFound: 13,
  gpuLost: 15,
  resetRequired: 16,
  operatingSystem: 17,
  versionMismatch: 18,
  noData: 21,
  argumentVersionMismatch: 25,
  unknown: 999,
} as const

const WORDS: ReadonlyMap<number, string> = new Map([
  [0, 'no error'],
  [1, 'the library was not initialized'],
  [2, 'invalid argument'],
  [3, 'not supported by this GPU'],
  [4, 'no permission'],
  [5, 'the library was initialized twice'],
  [6, 'not found'],
  [7, 'the buffer was too small'],
  [8, 'the GPU lacks external power: check its power cables'],
  [9, 'the NVIDIA driver is not loaded'],
  [10, 'the driver did not answer in time'],
  [11, 'the kernel has an interrupt problem with a GPU'],
  [12, 'a part of the driver library could not be loaded'],
  [13, 'the driver does not know this function'],
  [14, "the GPU's inforom is corrupted"],
  [15, 'the GPU has fallen off the bus'],
  [16, 'the GPU needs a reset'],
  [17, 'blocked by the operating system'],
  [18, 'driver and library have different versions'],
  [19, 'the GPU is in use'],
  [20, 'the driver is out of memory'],
  [21, 'no data'],
  [22, 'ECC is not supported with a virtual GPU'],
  [23, 'the driver is out of resources'],
  [24, 'this clock is not supported'],
  [25, 'the driver expects another version of this structure'],
  [26, 'the driver has dropped this function'],
  [27, 'not ready yet'],
  [28, 'no such GPU'],
  [29, 'not possible in the present state'],
  [999, 'unknown error in the driver'],
])

/** The meaning of a code, always with the code. */
export function codeInWords(code: number): string {
  return `${WORDS.get(code) ?? 'an error code that gpuwarden does not know'} (NVML code ${code})`
}

const INIT_ADVICE: ReadonlyMap<number, string> = new Map([
  [1, 'try again; if it stays, reinstall the NVIDIA driver'],
  [2, 'the library does not match gpuwarden; set GPUWARDEN_NVML to the libnvidia-ml.so.1 of the running driver'],
  [3, 'no GPU here is supported by this library; install the driver branch for this card'],
  [
    4,
    'the user may not open /dev/nvidiactl: check its permissions, join the group that owns it (often `video` or `render`), or run as root',
  ],
  [8, 'connect the power cables of the GPU, then reboot'],
  [
    9,
    'load it with `modprobe nvidia`, and look at `dmesg | grep -i nvrm` if that fails; in a container, start it with `--gpus all` or the NVIDIA runtime',
  ],
  [10, 'look at `dmesg | grep -i nvrm`; a hung GPU may need a reset or a reboot'],
  [11, 'look at `dmesg` for interrupt errors; reboot'],
  [12, 'reinstall the NVIDIA driver so that all its libraries are present'],
  [13, 'the library is too old for gpuwarden; update the NVIDIA driver'],
  [14, 'the card may need repair: run `nvidia-smi` and ask the vendor'],
  [15, 'look for `Xid 79` in `dmesg`; reboot, then check seating, power and cooling of the card'],
  [16, 'run `nvidia-smi --gpu-reset` with nothing using the GPU, or reboot'],
  [
    17,
    'a cgroup, container or sandbox denies access to the device files: allow /dev/nvidia* there (`--gpus all`, `--device`, device plugin)',
  ],
  [
    18,
    'the driver was updated while the old kernel module is still loaded: reboot, or stop everything on the GPU and reload it (`rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia`)',
  ],
  [20, 'free memory on this host and try again'],
  [23, 'too many clients of the driver: close some, or reboot'],
  [999, 'look at `dmesg | grep -i nvrm`; reload the driver or reboot'],
])

const INIT_KINDS: ReadonlyMap<number, DriverFaultKind> = new Map([
  [CODE.noPermission, 'no_permission'],
  [CODE.operatingSystem, 'no_permission'],
  [CODE.driverNotLoaded, 'no_driver'],
  [CODE.libraryNotFound, 'no_library'],
  [CODE.functionNotFound, 'no_library'],
  [CODE.versionMismatch, 'wrong_version'],
])

/** Why nvmlInit failed, and what to do. */
export function initFault(code: number, libraryPath: string): DriverFault {
  const advice = INIT_ADVICE.get(code) ?? 'run `nvidia-smi` to see whether the driver works at all'
  const kind = INIT_KINDS.get(code) ?? 'other'
  return new DriverFault(kind, `NVIDIA: nvmlInit of ${libraryPath} failed: ${codeInWords(code)}: ${advice}`)
}

/** Codes that will be the same next time: the question is not asked again. */
const FINAL: ReadonlySet<number> = new Set([
  CODE.invalidArgument,
  CODE.notSupported,
  CODE.noPermission,
  CODE.functionNotFound,
  22,
  CODE.argumentVersionMismatch,
  26,
])

export function isFinal(code: number): boolean {
  return FINAL.has(code)
}

/** Codes that speak of the whole GPU, not of the question. */
export function isFault(code: number): boolean {
  return code === CODE.gpuLost || code === CODE.resetRequired
}

/** Why a field is null, in the plainest words. */
export function reasonInWords(code: number): string {
  return WORDS.get(code) ?? codeInWords(code)
}

export const SYMBOL_MISSING = 'symbol missing: driver too old'
