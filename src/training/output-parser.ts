/** Finds loss, learning rate and step in what training programs print: HF dicts, JSON, tqdm bars and common log lines. */
import { ProgressBar } from './progress-bar.ts'

export interface PrintedStep {
  readonly step: number
  readonly epoch: number | null
  readonly loss: number
  readonly lr: number | null
  readonly grad_norm: number | null
  readonly step_seconds: number | null
}

export interface FoundStep extends PrintedStep {
  /** The line does not say which step it is: the bar does, and may be redrawn only after the line. */
  readonly isByBar: boolean
}

type Found = { -readonly [K in keyof PrintedStep]?: PrintedStep[K] } & { total?: number; epochs?: number }

const LONGEST_LINE = 8192
const NUMBER = '[\'"]?([-+]?(?:\\d+\\.?\\d*(?:e[-+]?\\d+)?|\\.\\d+|nan|inf(?:inity)?))\\b'
const after = (words: string) => new RegExp(`(?:^|[^\\w/])(?:${words})['"]?\\s*[:=]?\\s*${NUMBER}`, 'i')
const LOSS = after('(?:train(?:ing)?[_ /]?)?loss')
const RATE = after('lr|learning[_ ]rate')
const NORM = after('grad(?:ient)?[_ ]?norm|gnorm')
const EPOCH = /\bepoch\b['"]?\s*[:=#[(]*\s*['"]?(\d+(?:\.\d+)?)/i
const STEP = /\b(?:global[_ ]?step|train[_ ]?step|step|iter(?:ation)?|batch)\b['"]?\s*[:=#[(]*\s*(\d+)(?:\s*(?:\/|of\b)\s*(\d+))?/i
const EPOCHS = /\bepoch\b['"]?\s*[:=#[(]*\s*(\d+)\s*(?:\/|of\b)\s*(\d+)/i
/** `Train Epoch: 1 [640/60000 (1%)]` and `Epoch: [0][100/500]`. */
const PAIR = /\[\s*(\d+)\s*\/\s*\d+/
const OTHER_LOSS = /\b(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)\w*[_ /:-]*loss/i
/** The Trainer's last line: its `train_loss` is a mean of the whole training, not of a step. */
const TOTALS = /\btrain_runtime\b/
const OUT_OF_MEMORY = /\b(?:CUDA|HIP)(?: error:)? out of memory|OutOfMemoryError|CUDNN_STATUS_ALLOC_FAILED/
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is taken out
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]/g

export class OutputParser {
  readonly #bar: ProgressBar
  #rest = ''
  #lastStep = 0
  sawOutOfMemory = false
  /** What the steps are counted up to, by the lines themselves (`step 12/240`) or by the progress bar that the losses belong to. */
  totalSteps: number | null = null
  /** Steps of earlier epochs, where they are counted from the beginning in each. */
  #stepsBefore = 0
  #lastCount: { readonly step: number; readonly total: number; readonly epoch: number | null } | null = null

  constructor(bar = new ProgressBar()) {
    this.#bar = bar
  }

  feed(text: string): FoundStep[] {
    return [...this.read(text)]
  }

  /** One by one, so that a bar is not drawn before the lines above it are read. */
  *read(text: string): Generator<FoundStep> {
    const lines = (this.#rest + text).split(/[\r\n]+/)
    this.#rest = (lines.pop() ?? '').slice(-LONGEST_LINE)
    for (const line of lines) {
      const found = this.#read(line.slice(0, LONGEST_LINE).replace(ESCAPES, ''))
      if (found) yield found
    }
  }

  #read(line: string): FoundStep | null {
    if (OUT_OF_MEMORY.test(line)) this.sawOutOfMemory = true
    const bar = this.#bar.read(line)
    if (!/loss/i.test(line) || TOTALS.test(line)) return null
    const found = readValues(line, bar !== null)
    if (found === null || found.loss === undefined) return null
    const latest = this.#bar.current()
    const step = this.#numberOf(found) ?? latest?.step ?? this.#lastStep + 1
    // A bar is drawn again and again for the same step.
    if (bar && step === this.#lastStep) return null
    this.#lastStep = step
    if (found.step === undefined && latest && latest.total >= step) this.totalSteps = latest.total
    return {
      isByBar: found.step === undefined && bar === null && latest !== null,
      step,
      epoch: found.epoch ?? null,
      loss: found.loss,
      lr: found.lr ?? null,
      grad_norm: found.grad_norm ?? null,
      step_seconds: bar ? bar.secondsPerStep : null,
    }
  }

  /** The step by its number; `step 12/240` of the second epoch is the 252nd. */
  #numberOf({ step, total, epoch = null, epochs }: Found): number | null {
    if (step === undefined) return null
    if (total === undefined || total < step) return step
    const before = this.#lastCount
    const isNextEpoch = before !== null && (step < before.step || (step === before.step && epoch !== before.epoch))
    if (isNextEpoch && before.total === total) this.#stepsBefore += total
    this.#lastCount = { step, total, epoch }
    // Steps that are counted in an epoch are not those of the whole training.
    if (epochs !== undefined) this.totalSteps = total * epochs
    else if (epoch === null && this.#stepsBefore === 0) this.totalSteps = total
    return this.#stepsBefore + step
  }
}

function readValues(line: string, isBar: boolean): Found | null {
  const text = OTHER_LOSS.test(line) ? line.replace(new RegExp(`${OTHER_LOSS.source}['"]?\\s*[:=]?\\s*${NUMBER}`, 'gi'), ' ') : line
  const loss = numberAfter(LOSS, text)
  if (loss === null) return null
  const found: Found = { loss, lr: numberAfter(RATE, text), grad_norm: numberAfter(NORM, text), epoch: numberAfter(EPOCH, text) }
  const [, named, total] = STEP.exec(text) ?? []
  const step = named ?? (isBar ? undefined : PAIR.exec(text)?.[1])
  if (step !== undefined && Number.isSafeInteger(Number(step))) found.step = Number(step)
  if (total !== undefined && Number.isSafeInteger(Number(total))) found.total = Number(total)
  const epochs = EPOCHS.exec(text)?.[2]
  if (epochs !== undefined && Number.isSafeInteger(Number(epochs))) found.epochs = Number(epochs)
  return found
}

function numberAfter(pattern: RegExp, text: string): number | null {
  const word = pattern.exec(text)?.[1]?.toLowerCase()
  if (word === undefined) return null
  if (word.endsWith('nan')) return Number.NaN
  if (word.includes('inf')) return word.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return Number(word)
}
