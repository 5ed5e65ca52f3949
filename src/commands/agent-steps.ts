/** Training steps that an agent on this machine receives, for a command that watches the GPUs itself. */
import type { IncomingMessage } from 'node:http'
import { AgentClient } from '../core/agent-client.ts'
import type { HubEvent } from '../core/kinds.ts'
import { revived } from '../core/known/revive.ts'
import type { TrainingStep } from '../core/model.ts'
import { EventReader } from '../tui/sse.ts'
import { type AgentSettings, agentAddress } from './agent-address.ts'

const ANSWER_MS = 1000

export class AgentSteps {
  readonly #settings: AgentSettings
  readonly #receive: (steps: readonly TrainingStep[]) => void
  #answer: IncomingMessage | null = null
  #isOver = false

  constructor(settings: AgentSettings, receive: (steps: readonly TrainingStep[]) => void) {
    this.#settings = settings
    this.#receive = receive
  }

  /** Resolves at once where no agent runs. What it says of simulated or replayed runs is not of these GPUs. */
  async listen(): Promise<void> {
    if (this.#settings['server.port'] === 0) return
    const agent = new AgentClient(agentAddress(this.#settings, false), ANSWER_MS)
    if ((await agent.version()) === null) return
    const answer = await agent.stream('/api/v1/stream?types=steps')
    if (this.#isOver) {
      answer.destroy()
      return
    }
    this.#answer = answer
    const reader = new EventReader()
    answer.setEncoding('utf8').on('data', (text: string) => {
      for (const { event, data } of reader.feed(text)) if (event === 'steps') this.#take(revived(JSON.parse(data) as HubEvent))
    })
    // The agent may end while we watch: then the GPUs' own figures go on.
    answer.on('error', () => undefined)
  }

  stop(): void {
    this.#isOver = true
    this.#answer?.destroy()
  }

  #take(event: HubEvent): void {
    if (event.type === 'steps' && event.provenance === 'live') this.#receive(event.steps)
  }
}
