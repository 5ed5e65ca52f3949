/** Training runs and steps that an agent on this machine receives, for a command that watches the GPUs itself. */
import type { IncomingMessage } from 'node:http'
import { AgentClient } from '../core/agent-client.ts'
import type { HubEvent } from '../core/kinds.ts'
import { revived } from '../core/known/revive.ts'
import type { Run, TrainingStep } from '../core/model.ts'
import { EventReader } from '../tui/sse.ts'
import { type AgentSettings, agentAddress } from './agent-address.ts'

const ANSWER_MS = 1000

export interface TrainingListener {
  receiveRun(run: Run): void
  receiveSteps(steps: readonly TrainingStep[]): void
}

export class AgentSteps {
  readonly #settings: AgentSettings
  readonly #listener: TrainingListener
  #answer: IncomingMessage | null = null
  #isOver = false

  constructor(settings: AgentSettings, listener: TrainingListener) {
    this.#settings = settings
    this.#listener = listener
  }

  /** Resolves at once where no agent runs. What it says of simulated or replayed runs is not of these GPUs. */
  async listen(): Promise<void> {
    if (this.#settings['server.port'] === 0) return
    const agent = new AgentClient(agentAddress(this.#settings, false), ANSWER_MS)
    if ((await agent.version()) === null) return
    const answer = await agent.stream('/api/v1/stream?types=run,steps')
    if (this.#isOver) {
      answer.destroy()
      return
    }
    this.#answer = answer
    const reader = new EventReader()
    answer.setEncoding('utf8').on('data', (text: string) => {
      for (const { event, data } of reader.feed(text))
        if (event === 'steps' || event === 'run') this.#take(revived(JSON.parse(data) as HubEvent))
    })
    // The agent may end while we watch: then the GPUs' own figures go on.
    answer.on('error', () => undefined)
    const { runs } = await agent.get<{ readonly runs: readonly Run[] }>('/api/v1/runs')
    for (const run of runs) if (run.endedAt === null) this.#take({ type: 'run', run })
  }

  stop(): void {
    this.#isOver = true
    this.#answer?.destroy()
  }

  #take(event: HubEvent): void {
    if (event.type === 'steps' && event.provenance === 'live') this.#listener.receiveSteps(event.steps)
    else if (event.type === 'run' && event.run.provenance === 'live') this.#listener.receiveRun(event.run)
  }
}
