/** Temperature, throttling and energy: they have a memory, so they are integrated on a grid of whole seconds, the same whoever asks when. */
import { activityAt } from './activity.ts'
import { cardOf } from './cards.ts'
import { type GpuPlan, jobAt } from './jobs.ts'
import { clamp, hash } from './noise.ts'

/** The past that is simulated before the first tick, so that it begins warm. */
const BEFORE_SECONDS = 150
/** The chip follows its power with this time constant. */
const INERTIA_SECONDS = 16
/** How much warmer than the air a card at its limit gets. */
const FULL_POWER_CELSIUS = 46
/** Without throttling, a card whose cooling fails would get so much warmer than it may. */
const OVERHEAT_CELSIUS = 13
/** How long the air around a card takes to heat up or to cool down. */
const WARMING_SECONDS = 12
const LOOK_AHEAD_SECONDS = 4

export interface Heat {
  readonly celsius: number
  /** 0: free, 1: as slow as it gets. */
  readonly throttle: number
  readonly joules: number
  readonly throttledSeconds: number
}

export class HeatModel {
  readonly #plan: GpuPlan
  #second: number
  #now: Heat
  #next: Heat

  constructor(plan: GpuPlan) {
    this.#plan = plan
    this.#now = { celsius: 32, throttle: 0, joules: Math.round(4e8 * hash(plan.seed, plan.gpu, 6)), throttledSeconds: 0 }
    this.#second = -BEFORE_SECONDS
    this.#next = this.#advance(this.#second, this.#now)
  }

  /** Time must not go back from one call to the next. */
  at(seconds: number): Heat {
    const second = Math.floor(seconds)
    while (this.#second < second) {
      this.#second++
      this.#now = this.#next
      this.#next = this.#advance(this.#second, this.#now)
    }
    const part = clamp(seconds - this.#second, 0, 1)
    const between = (field: keyof Heat) => this.#now[field] + (this.#next[field] - this.#now[field]) * part
    return {
      celsius: between('celsius'),
      throttle: between('throttle'),
      joules: between('joules'),
      throttledSeconds: between('throttledSeconds'),
    }
  }

  #advance(second: number, before: Heat): Heat {
    const card = cardOf(this.#plan.gpu)
    const watts = powerWatts(this.#plan, activityAt(this.#plan, second + 0.5).power, before.throttle)
    const target = this.#airCelsius(second) + (FULL_POWER_CELSIUS * watts) / card.limitWatts
    const celsius = before.celsius + (target - before.celsius) / INERTIA_SECONDS
    // It acts on where the temperature goes, not only on where it is: a card settles at its limit, it does not swing around it.
    const excess = celsius - card.slowdownCelsius - 0.5 + LOOK_AHEAD_SECONDS * (celsius - before.celsius)
    const throttle = clamp(before.throttle + clamp(excess * 0.1, -0.02, 0.12), 0, 1)
    return {
      celsius,
      throttle,
      joules: before.joules + watts,
      throttledSeconds: before.throttledSeconds + (isThrottled(before.throttle) ? 1 : 0),
    }
  }

  #airCelsius(second: number): number {
    const { trouble, seed, gpu, workload } = this.#plan
    const air = 27 + 4 * hash(seed, gpu, 7)
    if (trouble !== 'overheat') return air
    const { slowdownCelsius, limitWatts } = cardOf(gpu)
    const warming = (FULL_POWER_CELSIUS * powerWatts(this.#plan, workload.powerShare, 0)) / limitWatts
    const wrong = jobAt(this.#plan, second)?.wrong
    if (!wrong) return air
    const hot = clamp((second - wrong.from) / WARMING_SECONDS, 0, 1) - clamp((second - wrong.to) / WARMING_SECONDS, 0, 1)
    return air + (slowdownCelsius + OVERHEAT_CELSIUS - air - warming) * hot
  }
}

export function powerWatts(plan: GpuPlan, share: number, throttle: number): number {
  const card = cardOf(plan.gpu)
  return card.idleWatts + (card.limitWatts - card.idleWatts) * clamp(share, 0, 1) * (1 - 0.7 * throttle)
}

export function isThrottled(throttle: number): boolean {
  return throttle > 0.02
}
