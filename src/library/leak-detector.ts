/** Checks whether GPU memory leaks, or the host memory of processes that use GPUs. */
import { EXIT, Failure } from '../core/failure.ts'
import { leak } from '../detectors/leak.ts'
import { type LeakVerdict, LeakVerdicts } from '../report/leak-verdicts.ts'
import { callSafely, deviceSet, MemoryMonitoring, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'

export interface LeakDetectorOptions extends MemoryToolOptions {
  /** Growth below this many MB (1024 × 1024 bytes) is no leak; 100 by default. */
  readonly threshold?: number
  /** Called for each leak. */
  readonly warningCallback?: (verdict: LeakVerdict) => void
}

export const DEFAULT_LEAK_THRESHOLD_MB = 100
const MEBIBYTE = 1024 ** 2

export class LeakDetector extends MemoryMonitoring {
  readonly #verdicts: LeakVerdicts

  constructor(options: LeakDetectorOptions = {}) {
    const { threshold = DEFAULT_LEAK_THRESHOLD_MB, warningCallback, devices } = options
    const verdicts = new LeakVerdicts({
      thresholdBytes: checkedMegabytes(threshold) * MEBIBYTE,
      devices: deviceSet(devices),
      onLeak: (verdict) => callSafely(warningCallback, verdict),
    })
    super(new MemoryTool(options, [verdicts], [leak]))
    this.#verdicts = verdicts
  }

  /** The verdict for each GPU, process and run so far. */
  checkForLeaks(): readonly LeakVerdict[] {
    return this.#verdicts.verdicts()
  }

  getStatusReport(): readonly LeakVerdict[] {
    return this.checkForLeaks()
  }
}

export function checkedMegabytes(megabytes: number): number {
  if (Number.isFinite(megabytes) && megabytes >= 0) return megabytes
  throw new Failure(`threshold: expected MB of growth, 0 or more; got ${String(megabytes)}`, { exitCode: EXIT.usage })
}
