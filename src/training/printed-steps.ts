/** Sends the steps that a command printed, unless the command reports steps itself. */
import type { AgentClient } from '../core/agent-client.ts'
import { toJson } from '../core/json-text.ts'
import { acknowledgedSteps } from './acknowledgement.ts'
import { type FoundStep, OutputParser } from './output-parser.ts'
import { ProgressBar } from './progress-bar.ts'

const SEND_EVERY_MS = 1000
const MOST_WAITING = 10_000
/** tqdm redraws its bar right below a line that was written above it, and not again for a tenth of a second. */
const BAR_FOLLOWS_MS = 90
/** Far from where SDKs count. */
const FIRST_SEQ = 2 ** 40

export class PrintedSteps {
  readonly #link: AgentClient
  readonly #run: string
  readonly #announced: Readonly<Record<string, unknown>>
  readonly #bar = new ProgressBar()
  readonly #parsers = new Map<string, OutputParser>()
  #unplaced: { readonly found: FoundStep; readonly at: number; readonly timer: NodeJS.Timeout } | null = null
  readonly #timer: NodeJS.Timeout
  #waiting: string[] = []
  #seq = FIRST_SEQ
  #sent = 0
  #toldTotal: number | null = null
  #first: number | null = null
  #last = 0
  #timed: { readonly step: number; readonly t: number } | null = null
  #stride: number | null = null
  #isOff = false
  #sending: Promise<void> | null = null

  /** `announced`: the run as it is posted; its plan cannot be posted without it. */
  constructor(link: AgentClient, announced: { readonly id: string; readonly name: string; readonly started_at: number }) {
    this.#link = link
    this.#run = announced.id
    this.#announced = announced
    this.#bar.onDraw = (step) => this.#place(step)
    this.#timer = setInterval(() => void this.send(), SEND_EVERY_MS)
    this.#timer.unref()
  }

  get sawOutOfMemory(): boolean {
    return [...this.#parsers.values()].some((parser) => parser.sawOutOfMemory)
  }

  /** How many steps were taken, by their numbers: not every one is printed. */
  get stepsTaken(): number {
    return this.#first === null ? 0 : this.#last - this.#first + (this.#first === 0 ? 1 : (this.#stride ?? 1))
  }

  /** `stream`: standard output and standard error are read separately, because each may stop in the middle of a line. */
  feed(stream: string, text: string): void {
    const parser = this.#parsers.get(stream) ?? new OutputParser(this.#bar)
    this.#parsers.set(stream, parser)
    for (const step of parser.read(text)) this.#take(step)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const stream of this.#parsers.keys()) this.feed(stream, '\n')
    this.#place(null)
    await this.#sending
    await this.send()
  }

  send(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null
    })
    return this.#sending
  }

  async #tellTotal(): Promise<void> {
    const total = [...this.#parsers.values()].find(({ totalSteps }) => totalSteps !== null)?.totalSteps ?? null
    if (total === null || total === this.#toldTotal) return
    const { status } = await this.#link.tryPost('/api/v1/runs', { ...this.#announced, total_steps: total })
    if (status === 200) this.#toldTotal = total
  }

  #take(found: FoundStep): void {
    this.#place(null)
    if (found.isByBar) {
      this.#unplaced = { found, at: Date.now(), timer: setTimeout(() => this.#place(null), BAR_FOLLOWS_MS) }
    } else this.#add(found, found.step, Date.now())
  }

  /** `step`: what the bar says now; null: it says nothing new. */
  #place(step: number | null): void {
    const unplaced = this.#unplaced
    if (!unplaced) return
    this.#unplaced = null
    clearTimeout(unplaced.timer)
    this.#add(unplaced.found, step ?? unplaced.found.step, unplaced.at)
  }

  #add({ isByBar: _, ...values }: FoundStep, step: number, t: number): void {
    if (this.#isOff || this.#waiting.length >= MOST_WAITING) return
    this.#waiting.push(
      toJson({ seq: ++this.#seq, rank: 0, t, ...values, step, step_seconds: values.step_seconds ?? this.#secondsPerStep(step, t) }),
    )
  }

  /** From the times and numbers of two lines; lines that come together have one time. */
  #secondsPerStep(step: number, t: number): number | null {
    this.#first ??= step
    this.#last = step
    const before = this.#timed
    if (before && t <= before.t) return null
    this.#timed = { step, t }
    const steps = step - (before?.step ?? step)
    if (steps > 0) this.#stride = Math.min(this.#stride ?? steps, steps)
    return before && steps > 0 ? (t - before.t) / 1000 / steps : null
  }

  async #send(): Promise<void> {
    if (this.#isOff || this.#waiting.length === 0) return
    const known = await this.#link.tryGet(`/api/v1/runs/${this.#run}`)
    const steps = (known.body as { training?: { steps?: number } } | null)?.training?.steps ?? 0
    if (steps > this.#sent) {
      this.#isOff = true
      this.#waiting = []
      return
    }
    const batch = this.#waiting.slice(0, 1000)
    const path = `/api/v1/runs/${this.#run}/steps`
    let answer = await this.#link.tryPostLines(path, batch)
    if (answer.status === 404) {
      // A command may print before the agent knows of it.
      await this.#link.tryPost('/api/v1/runs', this.#announced)
      answer = await this.#link.tryPostLines(path, batch)
    }
    const outcome = acknowledgedSteps(answer, this.#run, batch.length)
    if (outcome === null) return
    await this.#tellTotal()
    this.#sent += outcome.accepted
    this.#waiting.splice(0, batch.length)
  }
}
