/** Simulated GPUs with believable work and problems on demand. The same seed and times give the same samples. */
import type { GpuEvent, GpuInfo, Sample } from '../../core/model.ts'
import type { Source, SourceKind, SourceTick } from '../../core/source-contract.ts'
import { simulatedGpu } from './cards.ts'
import { gpuSample } from './gpu-sample.ts'
import { HeatModel } from './heat.ts'
import { hostSample } from './host-sample.ts'
import { type GpuPlan, planGpu } from './jobs.ts'
import { runsBetween } from './runs.ts'
import { type DemoOptions, demoOptions } from './scenarios.ts'
import { stepsBetween } from './training-steps.ts'

export { DEMO_SCENARIOS, type DemoScenario } from './scenarios.ts'

export const demo: SourceKind = {
  name: 'demo',
  async open(env) {
    return new DemoSource(demoOptions(env.options))
  },
}

interface SimulatedGpu {
  readonly info: GpuInfo
  readonly plan: GpuPlan
  readonly heat: HeatModel
}

class DemoSource implements Source {
  readonly provenance = 'simulated'
  readonly #seed: number
  readonly #gpus: readonly SimulatedGpu[]
  readonly #plans: readonly GpuPlan[]
  readonly #devices: readonly GpuInfo[]
  #origin: number | null = null
  /** Up to this moment everything was reported. */
  #lastMs = -1

  constructor(options: DemoOptions) {
    this.#seed = options.seed
    this.#gpus = Array.from({ length: options.gpus }, (_, index) => {
      const plan = planGpu(options, index)
      return { info: simulatedGpu(index), plan, heat: new HeatModel(plan) }
    })
    this.#plans = this.#gpus.map((gpu) => gpu.plan)
    this.#devices = this.#gpus.map((gpu) => gpu.info)
  }

  devices(): readonly GpuInfo[] {
    return this.#devices
  }

  /** Steps and events carry the moment at which they happened; what happened since the last tick comes first. */
  read({ at }: SourceTick): readonly Sample[] {
    this.#origin ??= at
    const origin = this.#origin
    // A clock that is set back makes the simulation stand still for a while, not run backwards.
    const elapsedMs = Math.max(at - origin, this.#lastMs)
    const samples: Sample[] = []
    for (const { info, plan } of this.#gpus) {
      samples.push(...runsBetween(plan, origin, this.#lastMs + 1, elapsedMs + 1))
      samples.push(...stepsBetween(plan, origin, this.#lastMs, elapsedMs))
      const event = lossEvent(info, plan, origin)
      if (event !== null && event.at - origin > this.#lastMs && event.at - origin <= elapsedMs) samples.push(event)
    }
    samples.sort((a, b) => a.at - b.at)
    this.#lastMs = elapsedMs
    samples.push(hostSample(this.#plans, this.#seed, at, elapsedMs / 1000))
    for (const { info, plan, heat } of this.#gpus) samples.push(gpuSample(info, plan, heat, at, elapsedMs / 1000))
    return samples
  }

  close(): void {
    // Nothing is held.
  }
}

function lossEvent(info: GpuInfo, plan: GpuPlan, origin: number): GpuEvent | null {
  if (plan.trouble !== 'lost' || plan.episode === null) return null
  return {
    kind: 'event',
    at: origin + plan.episode.from * 1000,
    gpu: info.id,
    event: 'xid',
    code: 79,
    message: 'GPU has fallen off the bus (simulated)',
    origin: 'kmsg',
  }
}
