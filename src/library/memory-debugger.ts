/** All memory tools over one sampling: profile, OOM forecast, leak verdicts, fragmentation. */
import type { Finding } from '../core/model.ts'
import { detectors } from '../detectors/index.ts'
import { FragmentationBook, type FragmentationFigures } from '../report/fragmentation-report.ts'
import { type LeakVerdict, LeakVerdicts } from '../report/leak-verdicts.ts'
import { MemoryProfile, type MemoryProfileReport } from '../report/memory-profile.ts'
import { OomAssessment, type OomPrediction } from '../report/oom-assessment.ts'
import { checkedMegabytes, DEFAULT_LEAK_THRESHOLD_MB } from './leak-detector.ts'
import { callSafely, deviceSet, MemoryMonitoring, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'
import { checkedThreshold, DEFAULT_OOM_THRESHOLD } from './oom-detector.ts'
import type { SnapshotReport } from './snapshot-analysis.ts'

export interface MemoryDebuggerOptions extends MemoryToolOptions {
  /** Percent; 85 by default. */
  readonly oomThreshold?: number
  /** MB; 100 by default. */
  readonly leakThreshold?: number
  readonly warningCallback?: (prediction: OomPrediction) => void
  readonly leakCallback?: (verdict: LeakVerdict) => void
  /** A PyTorch memory snapshot: generateReport() has its analysis. */
  readonly snapshot?: string
  /** Called for every finding of every detector. */
  readonly findingCallback?: (finding: Finding) => void
}

export interface MemoryDebuggerReport extends MemoryProfileReport {
  readonly oom: readonly OomPrediction[]
  readonly leaks: readonly LeakVerdict[]
  readonly fragmentation: FragmentationFigures
  /** Of `snapshot`, where one was given. */
  readonly snapshot: SnapshotReport | null
}

const MEBIBYTE = 1024 ** 2

export class MemoryDebugger extends MemoryMonitoring {
  readonly #profile: MemoryProfile
  readonly #oom: OomAssessment
  readonly #leaks: LeakVerdicts
  readonly #fragmentation: FragmentationBook
  readonly #tool: MemoryTool
  readonly #snapshot: string | undefined
  #analyzed: SnapshotReport | null = null

  constructor(options: MemoryDebuggerOptions = {}) {
    const { oomThreshold = DEFAULT_OOM_THRESHOLD, leakThreshold = DEFAULT_LEAK_THRESHOLD_MB } = options
    const devices = deviceSet(options.devices)
    const oom = new OomAssessment({
      thresholdPercent: checkedThreshold(oomThreshold),
      devices,
      onWarning: (prediction) => callSafely(options.warningCallback, prediction),
    })
    const leaks = new LeakVerdicts({
      thresholdBytes: checkedMegabytes(leakThreshold) * MEBIBYTE,
      devices,
      onLeak: (verdict) => callSafely(options.leakCallback, verdict),
    })
    const fragmentation = new FragmentationBook(devices)
    const profile = new MemoryProfile()
    const teller = { accept: () => undefined, acceptFinding: (finding: Finding) => callSafely(options.findingCallback, finding) }
    const tool = new MemoryTool(options, [profile, oom, leaks, fragmentation, teller], detectors)
    super(tool)
    this.#profile = profile
    this.#oom = oom
    this.#leaks = leaks
    this.#fragmentation = fragmentation
    this.#tool = tool
    this.#snapshot = options.snapshot
  }

  getStatusReport(): MemoryDebuggerReport {
    return {
      ...this.#profile.report(this.#tool.gpus(), this.#tool.processes(), this.#tool.lastAt),
      oom: this.#oom.predictions(),
      leaks: this.#leaks.verdicts(),
      fragmentation: this.#fragmentation.figures(),
      snapshot: this.#analyzed,
    }
  }

  /** Writes the report, as JSON or by the end of the path: .html is a page with charts, .txt is text; and gives it. */
  async generateReport(path?: string): Promise<MemoryDebuggerReport> {
    if (this.#snapshot !== undefined) this.#analyzed ??= await this.analyzeSnapshot(this.#snapshot)
    return this.#tool.write(path, this.getStatusReport(), this.#profile)
  }
}
