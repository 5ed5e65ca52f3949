/** Profiles GPU memory: use over time, percentiles, processes, growth, findings. */
import { detectors } from '../detectors/index.ts'
import { MemoryProfile, type MemoryProfileReport } from '../report/memory-profile.ts'
import { MemoryMonitoring, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'

export type MemoryProfilerOptions = MemoryToolOptions

export class MemoryProfiler extends MemoryMonitoring {
  readonly #profile: MemoryProfile
  readonly #tool: MemoryTool

  constructor(options: MemoryProfilerOptions = {}) {
    const profile = new MemoryProfile()
    const tool = new MemoryTool(options, [profile], detectors)
    super(tool)
    this.#profile = profile
    this.#tool = tool
  }

  getStatusReport(): MemoryProfileReport {
    return this.#profile.report(this.#tool.gpus(), this.#tool.processes(), this.#tool.lastAt)
  }

  /** Writes the report, as JSON or by the end of the path: .html is a page with charts, .txt is text; and gives it. */
  generateReport(path?: string): Promise<MemoryProfileReport> {
    return this.#tool.write(path, this.getStatusReport(), this.#profile)
  }
}
