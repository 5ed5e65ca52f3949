/** Finds loss, learning rate and step in what training programs print: HF dicts, JSON, tqdm bars and common log lines. */

export interface PrintedStep {
  readonly step: number
  readonly epoch: number | null
  readonly loss: number
  readonly lr: number | null
  readonly grad_norm: number | null
  readonly step_seconds: number | null
}

type Found = { -readonly [K in keyof PrintedStep]?: PrintedStep[K] }

const LONGEST_LINE = 8192
const NUMBER = '[\'"]?([-+]?(?:\\d+\\.?\\d*(?:e[-+]?\\d+)?|\\.\\d+|nan|inf(?:inity)?))\\b'
const after = (words: string) => new RegExp(`(?:^|[^\\w/])(?:${words})['"]?\\s*[:=]?\\s*${NUMBER}`, 'i')
const LOSS = after('(?:train(?:ing)?[_ /]?)?loss')
const RATE = after('lr|learning[_ ]rate')
const NORM = after('grad(?:ient)?[_ ]?norm|gnorm')
const EPOCH = /\bepoch\b['"]?\s*[:=#[(]*\s*(\d+(?:\.\d+)?)/i
const STEP = /\b(?:global[_ ]?step|train[_ ]?step|step|iter(?:ation)?|batch)\b['"]?\s*[:=#[(]*\s*(\d+)/i
/** `Train Epoch: 1 [640/60000 (1%)]` and `Epoch: [0][100/500]`. */
const PAIR = /\[\s*(\d+)\s*\/\s*\d+/
const OTHER_LOSS = /\b(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)\w*[_ /:-]*loss/i
const BAR = /(\d+)\/(\d+) \[[\d:?]+<[^,\]]*(?:,\s*([\d.]+)\s*(it\/s|s\/it))?/
const OUT_OF_MEMORY = /\b(?:CUDA|HIP)(?: error:)? out of memory|OutOfMemoryError|CUDNN_STATUS_ALLOC_FAILED/
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is taken out
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]/g

export class OutputParser {
  #rest = ''
  #lastStep = 0
  /** Of a progress bar without a loss of its own: the line of the loss comes after it. */
  #barStep: number | null = null
  #barSeconds: number | null = null
  #barTotal: number | null = null
  sawOutOfMemory = false
  /** What the progress bar that the losses go with counts up to. */
  totalSteps: number | null = null

  feed(text: string): PrintedStep[] {
    const lines = (this.#rest + text).split(/[\r\n]+/)
    this.#rest = (lines.pop() ?? '').slice(-LONGEST_LINE)
    return lines.flatMap((line) => this.#read(line.slice(0, LONGEST_LINE).replace(ESCAPES, '')) ?? [])
  }

  #read(line: string): PrintedStep | null {
    if (OUT_OF_MEMORY.test(line)) this.sawOutOfMemory = true
    const bar = BAR.exec(line)
    if (bar) {
      this.#barStep = Number(bar[1])
      this.#barTotal = Number(bar[2])
      const rate = Number(bar[3])
      this.#barSeconds = bar[3] === undefined || !(rate > 0) ? null : bar[4] === 's/it' ? rate : 1 / rate
    }
    if (!/loss/i.test(line)) return null
    const found = readValues(line)
    if (found === null || found.loss === undefined) return null
    const step = found.step ?? this.#barStep ?? this.#lastStep + 1
    // A bar is drawn again and again for the same step.
    if (bar && step === this.#lastStep) return null
    this.#lastStep = step
    if (found.step === undefined && this.#barTotal !== null && this.#barTotal >= step) this.totalSteps = this.#barTotal
    return {
      step,
      epoch: found.epoch ?? null,
      loss: found.loss,
      lr: found.lr ?? null,
      grad_norm: found.grad_norm ?? null,
      step_seconds: bar ? this.#barSeconds : null,
    }
  }
}

function readValues(line: string): Found | null {
  const text = OTHER_LOSS.test(line) ? line.replace(new RegExp(`${OTHER_LOSS.source}['"]?\\s*[:=]?\\s*${NUMBER}`, 'gi'), ' ') : line
  const loss = numberAfter(LOSS, text)
  if (loss === null) return null
  const found: Found = { loss, lr: numberAfter(RATE, text), grad_norm: numberAfter(NORM, text), epoch: numberAfter(EPOCH, text) }
  const step = STEP.exec(text)?.[1] ?? (BAR.test(text) ? undefined : PAIR.exec(text)?.[1])
  if (step !== undefined) found.step = Number(step)
  return found
}

function numberAfter(pattern: RegExp, text: string): number | null {
  const word = pattern.exec(text)?.[1]?.toLowerCase()
  if (word === undefined) return null
  if (word.endsWith('nan')) return Number.NaN
  if (word.includes('inf')) return word.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return Number(word)
}
