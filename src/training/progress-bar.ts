/** The last progress bar of a command. Its streams share it: tqdm draws on standard error while the losses go to standard output. */

const BAR = /(\d+)\/(\d+) \[[\d:?]+<[^,\]]*(?:,\s*([\d.]+)\s*(it\/s|s\/it))?/
/** A bar that was full for longer than this is over: bars of loading and downloading stay above the training forever. */
const OVER_AFTER_MS = 1000

interface Drawn {
  readonly step: number
  readonly total: number
  readonly secondsPerStep: number | null
  readonly at: number
}

export class ProgressBar {
  #drawn: Drawn | null = null
  onDraw: (step: number) => void = () => undefined

  /** null: the line has no bar. */
  read(line: string, at = Date.now()): Drawn | null {
    const found = BAR.exec(line)
    if (!found || !Number.isSafeInteger(Number(found[1]))) return null
    const rate = Number(found[3])
    const secondsPerStep = found[3] === undefined || !(rate > 0) ? null : found[4] === 's/it' ? rate : 1 / rate
    this.#drawn = { step: Number(found[1]), total: Number(found[2]), secondsPerStep, at }
    this.onDraw(this.#drawn.step)
    return this.#drawn
  }

  /** null: there is none, or it is over. */
  current(at = Date.now()): Drawn | null {
    const drawn = this.#drawn
    return drawn && (drawn.step < drawn.total || at - drawn.at <= OVER_AFTER_MS) ? drawn : null
  }
}
