/** How often forecasts came true, by detector, from the stored findings. */
import type { Finding } from '../core/model.ts'

export interface ForecastRow {
  readonly detector: string
  readonly forecasts: number
  readonly cameTrue: number
  readonly didNotHappen: number
  /** The run ended in another way, or nobody saw the end. */
  readonly unknown: number
  readonly open: number
  /** Of those that came true. */
  readonly medianLeadSeconds: number | null
  readonly medianErrorSeconds: number | null
}

export interface ForecastAccuracy {
  readonly rows: readonly ForecastRow[]
  /** Runs that ran out of memory, and those of them without a warning. */
  readonly outOfMemory: number
  readonly withoutWarning: number
}

export class ForecastTally {
  /** Detector by fingerprint. */
  readonly #open = new Map<string, string>()
  readonly #ended: Finding[] = []
  readonly #deaths = new Map<string, Finding>()

  accept(finding: Finding): void {
    const { fingerprint, detector, state, predictedAt, evidence } = finding
    if (detector === 'run_died') {
      if (state === 'active' && evidence.outcome === 'oom') this.#deaths.set(fingerprint, finding)
    } else if (state === 'active') {
      if (predictedAt !== null && detector === 'oom') this.#open.set(fingerprint, detector)
    } else if (this.#open.delete(fingerprint)) this.#ended.push(finding)
  }

  accuracy(): ForecastAccuracy {
    const names = [...new Set([...this.#open.values(), ...this.#ended.map((finding) => finding.detector)])].sort()
    const deaths = [...this.#deaths.values()]
    return {
      rows: names.map((detector) => this.#row(detector)),
      outOfMemory: deaths.length,
      withoutWarning: deaths.filter(({ evidence }) => evidence.forecast_seconds_before === null).length,
    }
  }

  #row(detector: string): ForecastRow {
    const ended = this.#ended.filter((finding) => finding.detector === detector)
    const open = [...this.#open.values()].filter((name) => name === detector).length
    const having = (outcome: string) => ended.filter(({ evidence }) => evidence.outcome === outcome)
    const hits = having('came_true')
    return {
      detector,
      forecasts: ended.length + open,
      cameTrue: hits.length,
      didNotHappen: having('did_not_happen').length,
      unknown: ended.length - hits.length - having('did_not_happen').length,
      open,
      medianLeadSeconds: medianOf(hits.map(({ evidence }) => evidence.lead_seconds)),
      medianErrorSeconds: medianOf(hits.map(({ evidence }) => Math.abs(Number(evidence.error_seconds)))),
    }
  }
}

function medianOf(values: readonly unknown[]): number | null {
  const numbers = values.filter((value): value is number => typeof value === 'number' && Number.isFinite(value)).sort((a, b) => a - b)
  return numbers[numbers.length >> 1] ?? null
}
