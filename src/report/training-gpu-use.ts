/** Means, peaks and energy of one GPU over a period; keeps no readings. */
import { isThrottled } from '../core/gpu-words.ts'
import type { Reading } from '../core/model.ts'

export interface GpuFigures {
  readonly utilizationRatio: Reading
  readonly tensorActiveRatio: Reading
  readonly memoryUsedBytes: Reading
  readonly temperatureCelsius: Reading
  readonly powerWatts: Reading
  readonly clockEventReasons?: Reading
  /** Counter since the driver was loaded. */
  readonly energyJoules: Reading
}

export interface GpuUseSummary {
  readonly samples: number
  readonly meanUtilizationRatio: Reading
  readonly meanTensorActiveRatio: Reading
  readonly meanMemoryUsedBytes: Reading
  readonly peakMemoryUsedBytes: Reading
  readonly peakTemperatureCelsius: Reading
  readonly meanPowerWatts: Reading
  readonly peakPowerWatts: Reading
  readonly energyJoules: Reading
  /** Share of the samples in which heat or protection slowed it down; null: it does not say. */
  readonly throttledRatio: Reading
}

/** Power is not carried over a longer gap. */
const LONGEST_GAP_MS = 60_000

class Figure {
  #sum = 0
  #count = 0
  peak: Reading = null

  add(value: Reading): void {
    if (value === null || !Number.isFinite(value)) return
    this.#sum += value
    this.#count++
    if (this.peak === null || value > this.peak) this.peak = value
  }

  get mean(): Reading {
    return this.#count === 0 ? null : this.#sum / this.#count
  }
}

export class GpuUse {
  readonly #utilization = new Figure()
  readonly #tensor = new Figure()
  readonly #memory = new Figure()
  readonly #temperature = new Figure()
  readonly #power = new Figure()
  readonly #throttled = new Figure()
  #samples = 0
  #lastAt: Reading = null
  #lastPower: Reading = null
  #lastCounter: Reading = null
  #counted: Reading = null
  #integrated: Reading = null

  accept(at: number, figures: GpuFigures): void {
    this.#samples++
    this.#utilization.add(figures.utilizationRatio)
    this.#tensor.add(figures.tensorActiveRatio)
    this.#memory.add(figures.memoryUsedBytes)
    this.#temperature.add(figures.temperatureCelsius)
    this.#power.add(figures.powerWatts)
    const { clockEventReasons: reasons = null } = figures
    if (reasons !== null) this.#throttled.add(isThrottled(reasons) ? 1 : 0)
    this.#addEnergy(at, figures)
  }

  summary(): GpuUseSummary {
    return {
      samples: this.#samples,
      meanUtilizationRatio: this.#utilization.mean,
      meanTensorActiveRatio: this.#tensor.mean,
      meanMemoryUsedBytes: this.#memory.mean,
      peakMemoryUsedBytes: this.#memory.peak,
      peakTemperatureCelsius: this.#temperature.peak,
      meanPowerWatts: this.#power.mean,
      peakPowerWatts: this.#power.peak,
      throttledRatio: this.#throttled.mean,
      // The card's counter misses nothing between samples but is read rarely: over a short period power is better.
      energyJoules: this.#integrated === null ? this.#counted : Math.max(this.#integrated, this.#counted ?? 0),
    }
  }

  #addEnergy(at: number, { powerWatts, energyJoules }: GpuFigures): void {
    if (
      powerWatts !== null &&
      this.#lastPower !== null &&
      this.#lastAt !== null &&
      at > this.#lastAt &&
      at - this.#lastAt <= LONGEST_GAP_MS
    )
      this.#integrated = (this.#integrated ?? 0) + ((powerWatts + this.#lastPower) / 2) * ((at - this.#lastAt) / 1000)
    this.#lastAt = at
    this.#lastPower = powerWatts
    if (energyJoules === null) return
    // A driver reload resets the counter.
    if (this.#lastCounter !== null && energyJoules >= this.#lastCounter)
      this.#counted = (this.#counted ?? 0) + energyJoules - this.#lastCounter
    this.#lastCounter = energyJoules
  }
}
