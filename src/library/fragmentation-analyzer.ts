/** Says where GPU memory is, and how much of it training runs lose to fragmentation. */

import { FragmentationBook, type FragmentationFigures } from '../report/fragmentation-report.ts'
import { deviceSet, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'

export type FragmentationAnalyzerOptions = MemoryToolOptions

export class FragmentationAnalyzer {
  readonly #book: FragmentationBook
  readonly #tool: MemoryTool

  constructor(options: FragmentationAnalyzerOptions = {}) {
    this.#book = new FragmentationBook(deviceSet(options.devices))
    this.#tool = new MemoryTool(options, [this.#book], [])
  }

  startMonitoring(): Promise<void> {
    return this.#tool.start()
  }

  stopMonitoring(): Promise<void> {
    return this.#tool.stop()
  }

  ended(): Promise<void> {
    return this.#tool.ended()
  }

  /** `runs` is empty where no run told what its allocator holds. */
  analyze(): FragmentationFigures {
    return this.#book.figures()
  }

  getStatusReport(): FragmentationFigures {
    return this.analyze()
  }
}
