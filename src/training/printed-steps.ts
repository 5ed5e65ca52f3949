/** Sends what a command printed of its steps, as long as the command does not report steps itself. */
import type { AgentLink } from './agent-link.ts'
import { toJson } from './json-text.ts'
import { OutputParser, type PrintedStep } from './output-parser.ts'

const SEND_EVERY_MS = 1000
const MOST_WAITING = 10_000
/** Far from where SDKs count. */
const FIRST_SEQ = 2 ** 40

export class PrintedSteps {
  readonly #link: AgentLink
  readonly #run: string
  readonly #parsers = new Map<string, OutputParser>()
  readonly #timer: NodeJS.Timeout
  #waiting: string[] = []
  #seq = FIRST_SEQ
  #sent = 0
  #isOff = false
  #sending: Promise<void> | null = null

  constructor(link: AgentLink, run: string) {
    this.#link = link
    this.#run = run
    this.#timer = setInterval(() => void this.send(), SEND_EVERY_MS)
    this.#timer.unref()
  }

  get sawOutOfMemory(): boolean {
    return [...this.#parsers.values()].some((parser) => parser.sawOutOfMemory)
  }

  /** `stream`: standard output and standard error are read apart, because each may break off in the middle of a line. */
  feed(stream: string, text: string): void {
    const parser = this.#parsers.get(stream) ?? new OutputParser()
    this.#parsers.set(stream, parser)
    for (const step of parser.feed(text)) this.#take(step)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const stream of this.#parsers.keys()) this.feed(stream, '\n')
    await this.#sending
    await this.send()
  }

  send(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null
    })
    return this.#sending
  }

  #take(step: PrintedStep): void {
    if (this.#isOff || this.#waiting.length >= MOST_WAITING) return
    this.#waiting.push(toJson({ seq: ++this.#seq, rank: 0, t: Date.now(), ...step }))
  }

  async #send(): Promise<void> {
    if (this.#isOff || this.#waiting.length === 0) return
    const known = await this.#link.get(`/api/v1/runs/${this.#run}`)
    const steps = (known.body as { training?: { steps?: number } } | null)?.training?.steps ?? 0
    if (steps > this.#sent) {
      this.#isOff = true
      this.#waiting = []
      return
    }
    const batch = this.#waiting.slice(0, 1000)
    const { status, body } = await this.#link.postLines(`/api/v1/runs/${this.#run}/steps`, batch)
    if (status !== 200) return
    this.#sent += (body as { accepted?: number }).accepted ?? 0
    this.#waiting.splice(0, batch.length)
  }
}
