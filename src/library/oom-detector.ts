/** Warns before GPU memory runs out. */
import { EXIT, Failure } from '../core/failure.ts'
import { oom } from '../detectors/oom.ts'
import { OomAssessment, type OomPrediction } from '../report/oom-assessment.ts'
import { oomWarning } from '../report/oom-warning.ts'
import { callSafely, deviceSet, MemoryMonitoring, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'

export interface OOMDetectorOptions extends MemoryToolOptions {
  /** Percent of memory in use from which the level alone is a warning; 85 by default. */
  readonly threshold?: number
  /** Without it warnings are printed to standard error. */
  readonly warningCallback?: (prediction: OomPrediction) => void
}

export const DEFAULT_OOM_THRESHOLD = 85

export class OOMDetector extends MemoryMonitoring {
  readonly #assessment: OomAssessment

  constructor(options: OOMDetectorOptions = {}) {
    const { threshold = DEFAULT_OOM_THRESHOLD, warningCallback = printWarning, devices } = options
    const assessment = new OomAssessment({
      thresholdPercent: checkedThreshold(threshold),
      devices: deviceSet(devices),
      onWarning: (prediction) => callSafely(warningCallback, prediction),
    })
    super(new MemoryTool(options, [assessment], [oom]))
    this.#assessment = assessment
  }

  getStatusReport(): readonly OomPrediction[] {
    return this.#assessment.predictions()
  }
}

export function checkedThreshold(percent: number): number {
  if (Number.isFinite(percent) && percent > 0 && percent <= 100) return percent
  throw new Failure(`threshold: expected percent of the memory, above 0 and up to 100; got ${String(percent)}`, { exitCode: EXIT.usage })
}

function printWarning(prediction: OomPrediction): void {
  process.stderr.write(`${oomWarning(prediction)}\n`)
}
