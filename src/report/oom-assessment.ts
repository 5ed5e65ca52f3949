/** How close each GPU is to running out of memory: the detector's forecast where there is one, else its level and a threshold. */
import { formatPercent } from '../core/format.ts'
import type { HubEvent } from '../core/kinds.ts'
import { RunMap, rankKey } from '../core/memory/run-map.ts'
import type { Finding, GpuInfo, Reading, RiskLevel, TrainingStep } from '../core/model.ts'

export interface OomPrediction {
  readonly deviceId: number
  readonly riskLevel: RiskLevel
  readonly currentUsagePercent: Reading
  /** Seconds from `at` until memory will be full; null: no forecast. */
  readonly predictedSeconds: Reading
  readonly earliestSeconds: Reading
  readonly latestSeconds: Reading
  /** 0–1; 0.5 for a level without a forecast. */
  readonly confidence: number
  readonly recommendations: readonly string[]
  readonly message: string
  /** Epoch milliseconds. */
  readonly at: number
  /** The run whose allocator it comes from; null: the device. */
  readonly run: string | null
  readonly simulated: boolean
}

export interface OomAssessmentOptions {
  /** Percent of the memory from which the level alone is a warning. */
  readonly thresholdPercent: number
  /** By index; null for all. */
  readonly devices: ReadonlySet<number> | null
  readonly onWarning?: (prediction: OomPrediction) => void
}

const RANK: Readonly<Record<RiskLevel, number>> = { low: 0, medium: 1, high: 2, critical: 3 }
/** A warning is repeated after this long at the earliest. */
const AGAIN_MS = 5000
/** Percentage points below the threshold before a level is news again. */
const HYSTERESIS = 2
/** When no more than this share of the memory above the threshold is free, the level alone is high risk. */
const NEARLY_FULL = 0.25
const LEVEL_CONFIDENCE = 0.5
const LEVEL_ADVICE = ['Prepare to release cache', 'Consider reducing batch size']

interface Known {
  readonly info: GpuInfo
  usagePercent: Reading
  at: number
  /** The process list was read and is empty. */
  isEmpty: boolean
  /** The worst prediction by subject. */
  readonly worst: Map<string, OomPrediction>
  /** The last warning by subject. */
  readonly told: Map<string, { risk: RiskLevel; at: number }>
}

export function isAtLeast(risk: RiskLevel, least: RiskLevel): boolean {
  return RANK[risk] >= RANK[least]
}

export class OomAssessment {
  readonly #options: OomAssessmentOptions
  readonly #gpus = new Map<string, Known>()
  readonly #active = new Map<string, Finding>()
  readonly #map = new RunMap()
  /** What each run needs at its peaks, as a share of its capacity. */
  readonly #needs = new Map<string, number>()

  constructor(options: OomAssessmentOptions) {
    this.#options = options
  }

  accept(event: HubEvent): void {
    if (event.type === 'devices') this.#takeDevices(event.devices)
    else if (event.type === 'run') this.#map.noteRun(event.run)
    else if (event.type === 'steps') for (const step of event.steps) this.#step(step)
    else if (event.type === 'tick')
      for (const sample of event.tick.gpus) {
        this.#map.noteSample(sample)
        const known = this.#gpus.get(sample.gpu)
        const { memoryUsedBytes: used, memoryTotalBytes: total } = sample
        if (known === undefined) continue
        known.at = sample.at
        known.isEmpty = sample.processes?.length === 0
        known.usagePercent = used === null || total === null || total <= 0 ? null : (used / total) * 100
        this.#judgeLevel(known)
      }
  }

  acceptFinding(finding: Finding): void {
    if (finding.detector !== 'oom') return
    if (finding.state === 'resolved') this.#active.delete(finding.fingerprint)
    else this.#active.set(finding.fingerprint, finding)
    const known = this.#gpuOf(finding)
    if (known === undefined) return
    if (finding.state === 'resolved') {
      // A forecast that ends with its process came true or was prevented; one that ends earlier was wrong.
      if (!known.isEmpty) known.worst.delete(finding.fingerprint)
      return
    }
    const prediction = this.#fromFinding(known, finding)
    const isHigh = isAtLeast(prediction.riskLevel, 'high')
    const isMedium = prediction.riskLevel === 'medium' && (known.usagePercent ?? 0) >= this.#options.thresholdPercent
    if (isHigh || isMedium) this.#tell(known, finding.fingerprint, prediction)
  }

  /** Now, per GPU. */
  predictions(): OomPrediction[] {
    return this.#shown().map((known) => this.#now(known))
  }

  /** The worst that was not withdrawn, per GPU. */
  worst(): OomPrediction[] {
    return this.#shown().map((known) =>
      [...known.worst.values()].reduce((best, one) => (RANK[one.riskLevel] > RANK[best.riskLevel] ? one : best), this.#now(known)),
    )
  }

  #shown(): Known[] {
    const { devices } = this.#options
    return [...this.#gpus.values()]
      .filter(({ info }) => devices === null || devices.has(info.index))
      .sort((a, b) => a.info.index - b.info.index || a.info.label.localeCompare(b.info.label))
  }

  #takeDevices(devices: readonly GpuInfo[]): void {
    for (const info of devices) {
      this.#map.noteDevice(info)
      const known = this.#gpus.get(info.id)
      this.#gpus.set(
        info.id,
        known ? { ...known, info } : { info, usagePercent: null, at: 0, isEmpty: false, worst: new Map(), told: new Map() },
      )
    }
  }

  #step(step: TrainingStep): void {
    if (step.memoryAllocatedBytes === null) return
    this.#map.noteStep(step)
    const capacity = this.#map.capacity(step.run, step.rank)
    const peak = step.memoryPeakAllocatedBytes ?? step.memoryAllocatedBytes
    if (capacity !== null && capacity > 0) this.#needs.set(rankKey(step.run, step.rank), peak / capacity)
  }

  /** Where a run reports its allocator, its need counts, not the cache that fills the GPU. */
  #levelOf(known: Known): Reading {
    if (!this.#map.covers(known.info.id, known.at)) return known.usagePercent
    let most: Reading = null
    for (const key of this.#map.ranksOn(known.info.id)) most = Math.max(most ?? 0, (this.#needs.get(key) ?? 0) * 100)
    // A run that has just ended needs nothing anymore.
    return most === null || known.usagePercent === null ? most : Math.min(most, known.usagePercent)
  }

  #judgeLevel(known: Known): void {
    const level = this.#levelOf(known)
    const { thresholdPercent } = this.#options
    if (level === null || level < thresholdPercent - HYSTERESIS) {
      known.told.delete('level')
      return
    }
    if (level < thresholdPercent) return
    const told = known.told.get('level')
    const isNews = told === undefined || RANK[riskOfLevel(level, thresholdPercent)] > RANK[told.risk]
    // A forecast says more than the level.
    if (isNews && this.#forecastOf(known) === null) this.#tell(known, 'level', this.#fromLevel(known, level))
  }

  #tell(known: Known, what: string, prediction: OomPrediction): void {
    const gravest = known.worst.get(what)
    if (gravest === undefined || isAtLeast(prediction.riskLevel, gravest.riskLevel)) known.worst.set(what, prediction)
    const before = known.told.get(what)
    if (before !== undefined && before.risk === prediction.riskLevel && prediction.at - before.at < AGAIN_MS && prediction.at >= before.at)
      return
    known.told.set(what, { risk: prediction.riskLevel, at: prediction.at })
    const { devices, onWarning } = this.#options
    if (devices === null || devices.has(known.info.index)) onWarning?.(prediction)
  }

  #gpuOf(finding: Finding): Known | undefined {
    const { gpu, gpuIndex } = finding.subject
    if (gpu !== null) return this.#gpus.get(gpu)
    for (const known of this.#gpus.values()) if (known.info.index === gpuIndex && known.info.mig === null) return known
    return undefined
  }

  #forecastOf(known: Known): OomPrediction | null {
    let best: OomPrediction | null = null
    for (const finding of this.#active.values()) {
      if (this.#gpuOf(finding) !== known) continue
      const one = this.#fromFinding(known, finding)
      if (best === null || RANK[one.riskLevel] > RANK[best.riskLevel]) best = one
    }
    return best
  }

  #now(known: Known): OomPrediction {
    const forecast = this.#forecastOf(known)
    const level = this.#levelOf(known)
    const isAbove = level !== null && level >= this.#options.thresholdPercent
    const fromLevel = isAbove ? this.#fromLevel(known, level) : null
    if (forecast !== null && (fromLevel === null || RANK[forecast.riskLevel] >= RANK[fromLevel.riskLevel])) return forecast
    return fromLevel ?? this.#nothing(known, level)
  }

  #fromFinding(known: Known, finding: Finding): OomPrediction {
    const seconds = (at: Reading) => (at === null ? null : Math.max(0, (at - finding.at) / 1000))
    return {
      ...this.#about(known, finding.at),
      riskLevel: finding.riskLevel ?? 'low',
      predictedSeconds: seconds(finding.predictedAt),
      earliestSeconds: seconds(finding.predictedEarliestAt),
      latestSeconds: seconds(finding.predictedLatestAt),
      confidence: finding.confidence,
      recommendations: finding.advice,
      message: finding.message,
      run: finding.subject.run,
    }
  }

  #fromLevel(known: Known, level: number): OomPrediction {
    const { thresholdPercent } = this.#options
    return {
      ...this.#about(known, known.at),
      riskLevel: riskOfLevel(level, thresholdPercent),
      predictedSeconds: null,
      earliestSeconds: null,
      latestSeconds: null,
      confidence: LEVEL_CONFIDENCE,
      recommendations: LEVEL_ADVICE,
      message: `GPU ${known.info.label}: ${formatPercent(level / 100)} of the memory is ${level === known.usagePercent ? 'in use' : 'needed at peaks'}, at or above the threshold of ${thresholdPercent}%; it is not growing toward the limit`,
      run: null,
    }
  }

  #nothing(known: Known, level: Reading): OomPrediction {
    return {
      ...this.#about(known, known.at),
      riskLevel: 'low',
      predictedSeconds: null,
      earliestSeconds: null,
      latestSeconds: null,
      confidence: LEVEL_CONFIDENCE,
      recommendations: [],
      message:
        level === null
          ? `GPU ${known.info.label}: memory in use is unknown`
          : `GPU ${known.info.label}: below the threshold of ${this.#options.thresholdPercent}%, and not growing toward the limit`,
      run: null,
    }
  }

  #about({ info, usagePercent }: Known, at: number) {
    return { deviceId: info.index, currentUsagePercent: usagePercent, at, simulated: info.provenance === 'simulated' }
  }
}

function riskOfLevel(level: number, threshold: number): RiskLevel {
  return 100 - level <= NEARLY_FULL * (100 - threshold) ? 'high' : 'medium'
}
