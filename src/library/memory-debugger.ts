/** All memory tools on one sampling: profile, OOM forecast, leak verdicts, fragmentation. */
import { writeFile } from 'node:fs/promises'
import type { Finding } from '../core/model.ts'
import { detectors } from '../detectors/index.ts'
import { FragmentationBook, type FragmentationFigures } from '../report/fragmentation-report.ts'
import { type LeakVerdict, LeakVerdicts } from '../report/leak-verdicts.ts'
import { MemoryProfile, type MemoryProfileReport } from '../report/memory-profile.ts'
import { OomAssessment, type OomPrediction } from '../report/oom-assessment.ts'
import { profileHtml } from '../report/profile-html.ts'
import { checkedMegabytes, DEFAULT_LEAK_THRESHOLD_MB } from './leak-detector.ts'
import { callSafely, deviceSet, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'
import { checkedThreshold, DEFAULT_OOM_THRESHOLD } from './oom-detector.ts'

export interface MemoryDebuggerOptions extends MemoryToolOptions {
  /** Percent; 85 by default. */
  readonly oomThreshold?: number
  /** MB; 100 by default. */
  readonly leakThreshold?: number
  readonly warningCallback?: (prediction: OomPrediction) => void
  readonly leakCallback?: (verdict: LeakVerdict) => void
  /** Called for every finding of every detector. */
  readonly findingCallback?: (finding: Finding) => void
}

export interface MemoryDebuggerReport extends MemoryProfileReport {
  readonly oom: readonly OomPrediction[]
  readonly leaks: readonly LeakVerdict[]
  readonly fragmentation: FragmentationFigures
}

const MEBIBYTE = 1024 ** 2

export class MemoryDebugger {
  readonly #profile = new MemoryProfile()
  readonly #oom: OomAssessment
  readonly #leaks: LeakVerdicts
  readonly #fragmentation: FragmentationBook
  readonly #tool: MemoryTool

  constructor(options: MemoryDebuggerOptions = {}) {
    const { oomThreshold = DEFAULT_OOM_THRESHOLD, leakThreshold = DEFAULT_LEAK_THRESHOLD_MB } = options
    const devices = deviceSet(options.devices)
    this.#oom = new OomAssessment({
      thresholdPercent: checkedThreshold(oomThreshold),
      devices,
      onWarning: (prediction) => callSafely(options.warningCallback, prediction),
    })
    this.#leaks = new LeakVerdicts({
      thresholdBytes: checkedMegabytes(leakThreshold) * MEBIBYTE,
      devices,
      onLeak: (verdict) => callSafely(options.leakCallback, verdict),
    })
    this.#fragmentation = new FragmentationBook(devices)
    const teller = { accept: () => undefined, acceptFinding: (finding: Finding) => callSafely(options.findingCallback, finding) }
    this.#tool = new MemoryTool(options, [this.#profile, this.#oom, this.#leaks, this.#fragmentation, teller], detectors)
  }

  /** Resolves when the GPUs are open; rejects with a Failure that says what to do. */
  startMonitoring(): Promise<void> {
    return this.#tool.start()
  }

  stopMonitoring(): Promise<void> {
    return this.#tool.stop()
  }

  /** Resolves when a recording (source replay:PATH) is over. */
  ended(): Promise<void> {
    return this.#tool.ended()
  }

  getStatusReport(): MemoryDebuggerReport {
    return {
      ...this.#profile.report(this.#tool.gpus(), this.#tool.processes(), this.#tool.lastAt),
      oom: this.#oom.predictions(),
      leaks: this.#leaks.verdicts(),
      fragmentation: this.#fragmentation.figures(),
    }
  }

  /** Returns the report, and writes it to `path`: as a page with charts if it ends in .html, else as JSON. */
  async generateReport(path?: string): Promise<MemoryDebuggerReport> {
    const report = this.getStatusReport()
    if (path === undefined) return report
    const infos = this.#tool.gpus().map((view) => view.info)
    await writeFile(path, /\.html?$/i.test(path) ? profileHtml(this.#profile, report, infos) : `${JSON.stringify(report, null, 2)}\n`)
    return report
  }
}
