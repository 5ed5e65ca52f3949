/** Profiles GPU memory: use over time, percentiles, processes, growth, findings. */
import { writeFile } from 'node:fs/promises'
import { detectors } from '../detectors/index.ts'
import { MemoryProfile, type MemoryProfileReport } from '../report/memory-profile.ts'
import { profileHtml } from '../report/profile-html.ts'
import { MemoryTool, type MemoryToolOptions } from './memory-tool.ts'

export type MemoryProfilerOptions = MemoryToolOptions

export class MemoryProfiler {
  readonly #profile = new MemoryProfile()
  readonly #tool: MemoryTool

  constructor(options: MemoryProfilerOptions = {}) {
    this.#tool = new MemoryTool(options, [this.#profile], detectors)
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

  getStatusReport(): MemoryProfileReport {
    return this.#profile.report(this.#tool.gpus(), this.#tool.processes(), this.#tool.lastAt)
  }

  /** Returns the report, and writes it to `path`: as a page with charts if it ends in .html, else as JSON. */
  async generateReport(path?: string): Promise<MemoryProfileReport> {
    const report = this.getStatusReport()
    if (path === undefined) return report
    const infos = this.#tool.gpus().map((view) => view.info)
    await writeFile(path, /\.html?$/i.test(path) ? profileHtml(this.#profile, report, infos) : `${JSON.stringify(report, null, 2)}\n`)
    return report
  }
}
