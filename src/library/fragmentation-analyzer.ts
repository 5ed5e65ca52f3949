/** Shows where GPU memory is, and how much of it is fragmented in training runs. */
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

  /** `runs` is empty when no run reported its allocator. */
  analyze(): FragmentationFigures {
    return this.#book.figures()
  }

  getStatusReport(): FragmentationFigures {
    return this.analyze()
  }
}
