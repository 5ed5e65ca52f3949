/**
 * What becomes an alert, as two tables. Detectors say most of it: for those a rule only adds patience, or is switched off. A level rule
 * watches a reading that no detector covers; where a detector that does is running, the rule stands back, so that nothing alarms twice.
 */
import type { Finding, Severity } from '../core/model.ts'
import { worst } from './alert-record.ts'
import type { Patience } from './engine.ts'

/** What may be written under `alerts.rules.NAME`: false for off, or these laid over the table. */
export interface RuleOptions {
  readonly for_seconds?: number | undefined
  readonly keep_firing_seconds?: number | undefined
  readonly severity?: Severity | undefined
  /** Level rules only. */
  readonly threshold?: number | undefined
  readonly clear?: number | undefined
}

export type RuleChoice = boolean | RuleOptions

/** Rules over findings, by the name under which they are configured. */
export interface FindingRule {
  readonly detector: string
  readonly forSeconds: number
  /** Says how severe it is for people; null leaves the detector's word. */
  readonly judge: ((finding: Finding) => Severity) | null
  readonly about: string
}

export const FINDING_RULES = {
  temperature: {
    detector: 'thermal',
    forSeconds: 0,
    // The notice level (80 °C) is information on a card that knows its own limit, and all there is on one that does not.
    judge: ({ severity, evidence }) => (severity === 'info' && evidence.limit_known === false ? 'warning' : severity),
    about: "temperature near the card's own slowdown point, or 80 °C where that is unknown",
  },
  throttle: { detector: 'throttle', forSeconds: 300, judge: null, about: 'thermal throttling for 5 minutes' },
  power_brake: { detector: 'power_brake', forSeconds: 300, judge: null, about: 'power brake for 5 minutes' },
  xid: { detector: 'xid', forSeconds: 0, judge: null, about: 'XID: hardware faults critical, faults of applications a warning' },
  ecc: { detector: 'ecc', forSeconds: 0, judge: null, about: 'uncorrected ECC errors' },
  remap: { detector: 'remap', forSeconds: 0, judge: null, about: 'row remapping failed or pending' },
  gpu_lost: { detector: 'gpu_lost', forSeconds: 0, judge: null, about: 'GPU lost' },
  driver_stuck: { detector: 'driver_stuck', forSeconds: 0, judge: null, about: 'driver not responding' },
} as const satisfies Readonly<Record<string, FindingRule>>

/** Rules over readings. It fires at `threshold` and clears below `clear`. */
export interface LevelRule {
  readonly reads: 'gpu' | 'host' | 'source'
  /** null: taken from `anomaly.threshold`. */
  readonly threshold: number | null
  /** How far below the threshold it clears. */
  readonly gap: number
  readonly forSeconds: number
  readonly severity: Severity
  /** From here on critical. */
  readonly critical: number | null
  /** A detector that says the same, better, and how the fingerprints of those findings begin. */
  readonly coveredBy: { readonly detector: string; readonly fingerprint: string } | null
  readonly advice: readonly string[]
  readonly about: string
}

export const LEVEL_RULES = {
  memory: {
    reads: 'gpu',
    threshold: null,
    gap: 0.05,
    forSeconds: 600,
    severity: 'warning',
    critical: null,
    coveredBy: { detector: 'memory_pressure', fingerprint: 'memory_pressure|level' },
    advice: ['See who holds the memory (gpuwarden status), and lower batch sizes or end what is not needed.'],
    about: 'share of GPU memory in use, held for 10 minutes',
  },
  source_stale: {
    reads: 'source',
    threshold: 60,
    gap: 30,
    forSeconds: 30,
    severity: 'warning',
    critical: null,
    coveredBy: null,
    advice: ['Look at the agent log, and run gpuwarden doctor.'],
    about: 'seconds without a sample from a source that calls itself well',
  },
  disk: {
    reads: 'host',
    threshold: 0.95,
    gap: 0.02,
    forSeconds: 60,
    severity: 'warning',
    critical: 0.99,
    coveredBy: null,
    advice: ['Free some space, or lower log.keep_total_mb and log.keep_days.'],
    about: 'share of the disk of the log folder in use',
  },
} as const satisfies Readonly<Record<string, LevelRule>>

export type FindingRuleName = keyof typeof FINDING_RULES
export type LevelRuleName = keyof typeof LEVEL_RULES
export type RuleName = FindingRuleName | LevelRuleName

export const FINDING_RULE_NAMES = Object.keys(FINDING_RULES) as FindingRuleName[]
export const LEVEL_RULE_NAMES = Object.keys(LEVEL_RULES) as LevelRuleName[]

export interface RuleSettings {
  readonly choices: Readonly<Record<RuleName, RuleChoice>>
  readonly keepFiringSeconds: number
  /** Detectors whose findings never become alerts. */
  readonly ignored: readonly string[]
  /** Detectors that run. */
  readonly detectors: ReadonlySet<string>
}

interface Entry {
  readonly isOn: boolean
  readonly options: RuleOptions
  readonly forSeconds: number
  readonly judge: (finding: Finding) => Severity
}

/** The rules as configured. */
export class Rules {
  readonly #settings: RuleSettings
  readonly #byDetector = new Map<string, Entry>()
  readonly #ignored: ReadonlySet<string>

  constructor(settings: RuleSettings) {
    this.#settings = settings
    this.#ignored = new Set(settings.ignored)
    for (const name of FINDING_RULE_NAMES) {
      const rule: FindingRule = FINDING_RULES[name]
      this.#byDetector.set(rule.detector, entryOf(settings.choices[name], rule.forSeconds, rule.judge ?? ((finding) => finding.severity)))
    }
    // A level rule's own findings carry its name as their detector.
    for (const name of LEVEL_RULE_NAMES)
      this.#byDetector.set(
        name,
        entryOf(settings.choices[name], LEVEL_RULES[name].forSeconds, (finding) => finding.severity),
      )
  }

  /** The finding as it concerns people; null: no alert is wanted. The end of a trouble always passes. */
  admit(finding: Finding): Finding | null {
    const entry = this.#entry(finding)
    if (finding.state === 'active' && (entry?.isOn === false || this.#ignored.has(finding.detector))) return null
    const severity = entry?.options.severity ?? entry?.judge(finding) ?? finding.severity
    return severity === finding.severity ? finding : { ...finding, severity }
  }

  /** A bound function, to be handed to the engine. */
  readonly patienceOf = (finding: Finding): Patience => {
    const entry = this.#entry(finding)
    return {
      forMs: (entry?.options.for_seconds ?? entry?.forSeconds ?? 0) * 1000,
      keepFiringMs: (entry?.options.keep_firing_seconds ?? this.#settings.keepFiringSeconds) * 1000,
    }
  }

  /** Whether the rule looks at readings itself: it is on, and no detector does it, or it was given thresholds of its own. */
  isWatched(name: LevelRuleName): boolean {
    return this.#byDetector.get(name)?.isOn === true && !this.#standsBack(name)
  }

  optionsOf(name: LevelRuleName): RuleOptions {
    return this.#byDetector.get(name)?.options ?? {}
  }

  #standsBack(name: LevelRuleName): boolean {
    const { coveredBy }: LevelRule = LEVEL_RULES[name]
    const { threshold, clear } = this.optionsOf(name)
    return coveredBy !== null && this.#settings.detectors.has(coveredBy.detector) && threshold === undefined && clear === undefined
  }

  #entry(finding: Finding): Entry | undefined {
    for (const name of LEVEL_RULE_NAMES) {
      const rule: LevelRule = LEVEL_RULES[name]
      if (rule.coveredBy?.detector !== finding.detector || !finding.fingerprint.startsWith(rule.coveredBy.fingerprint)) continue
      // The detector speaks in the name of the rule: as severe, and switched off with it.
      const own = this.#byDetector.get(name)
      const judge = ({ severity }: Finding) => worst([severity, rule.severity])
      return own && { ...own, judge, isOn: own.isOn && this.#standsBack(name) }
    }
    return this.#byDetector.get(finding.detector)
  }
}

function entryOf(choice: RuleChoice, forSeconds: number, judge: Entry['judge']): Entry {
  return { isOn: choice !== false, options: typeof choice === 'boolean' ? {} : choice, forSeconds, judge }
}
