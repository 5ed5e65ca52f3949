/** Shows where GPU memory is, and how much of it is fragmented in training runs. */
import { FragmentationBook, type FragmentationFigures } from '../report/fragmentation-report.ts'
import { deviceSet, MemoryMonitoring, MemoryTool, type MemoryToolOptions } from './memory-tool.ts'

export type FragmentationAnalyzerOptions = MemoryToolOptions

export class FragmentationAnalyzer extends MemoryMonitoring {
  readonly #book: FragmentationBook

  constructor(options: FragmentationAnalyzerOptions = {}) {
    const book = new FragmentationBook(deviceSet(options.devices))
    super(new MemoryTool(options, [book], []))
    this.#book = book
  }

  /** `runs` is empty when no run reported its allocator. */
  analyze(): FragmentationFigures {
    return this.#book.figures()
  }

  getStatusReport(): FragmentationFigures {
    return this.analyze()
  }
}
