/** What becomes an alert: every finding, after the time that its detector asks for, unless the configuration says otherwise. */
import type { DetectorDeclaration } from '../core/detector-contract.ts'
import type { Finding, Severity } from '../core/model.ts'
import type { Patience } from './engine.ts'

/** What may be written under `alerts.rules.NAME`: false for off, or these. */
export interface RuleOptions {
  readonly for_seconds?: number | undefined
  readonly keep_firing_seconds?: number | undefined
  readonly severity?: Severity | undefined
  /** For rules about a level; the detector takes them. */
  readonly threshold?: number | undefined
  readonly clear?: number | undefined
}

export type RuleChoice = boolean | RuleOptions

interface Rule {
  readonly detector: string
  /** Only for findings whose fingerprint begins with the detector and this; null: for all. */
  readonly part: string | null
  /** What the threshold is, in words; null: there is none. */
  readonly level: string | null
}

const about = (detector: string, level: string | null = null): Rule => ({ detector, part: null, level })

export const RULES = {
  temperature: about('thermal'),
  throttle: about('throttle'),
  power_brake: about('power_brake'),
  xid: about('xid'),
  ecc: about('ecc'),
  remap: about('remap'),
  gpu_lost: about('gpu_lost'),
  driver_stuck: about('driver_stuck'),
  memory: { detector: 'memory_pressure', part: 'level', level: 'share of GPU memory in use' },
  source_stale: about('source_stale', 'seconds without a sample'),
  disk: about('disk', 'share of the disk in use'),
} satisfies Readonly<Record<string, Rule>>

export type RuleName = keyof typeof RULES
export const RULE_NAMES = Object.keys(RULES) as RuleName[]
const RULE_OF = new Map<string, RuleName>(RULE_NAMES.map((name) => [RULES[name].detector, name]))

export interface RuleSettings {
  readonly choices: Readonly<Record<RuleName, RuleChoice>>
  readonly keepFiringSeconds: number
  /** Detectors whose findings never become alerts. */
  readonly ignored: readonly string[]
}

export class Rules {
  readonly #settings: RuleSettings
  readonly #ignored: ReadonlySet<string>
  readonly #detectors: ReadonlyMap<string, DetectorDeclaration>

  constructor(settings: RuleSettings, detectors: readonly DetectorDeclaration[]) {
    this.#settings = settings
    this.#ignored = new Set(settings.ignored)
    this.#detectors = new Map(detectors.map((detector) => [detector.name, detector]))
  }

  /** The finding with its alert severity; null: no alert is wanted. The end of a problem always passes. */
  admit(finding: Finding): Finding | null {
    const choice = this.#choice(finding)
    if (finding.state === 'active' && (choice === false || this.#ignored.has(finding.detector))) return null
    const detector = this.#detectors.get(finding.detector)
    const severity = optionsOf(choice).severity ?? detector?.alertSeverity?.(finding) ?? finding.severity
    return severity === finding.severity ? finding : { ...finding, severity }
  }

  readonly patienceOf = (finding: Finding): Patience => {
    const options = optionsOf(this.#choice(finding))
    return {
      forMs: (options.for_seconds ?? this.#detectors.get(finding.detector)?.patienceSeconds ?? 0) * 1000,
      keepFiringMs: (options.keep_firing_seconds ?? this.#settings.keepFiringSeconds) * 1000,
    }
  }

  /** How long its subject must be seen without a problem before it counts as gone; null: no time is long enough. */
  findsAgainMs({ detector }: Finding): number | null {
    const seconds = this.#detectors.get(detector)?.findsAgainSeconds
    return seconds === undefined ? null : seconds * 1000
  }

  /** Whether this detector runs; true where it is not known which do. */
  readonly isWatched = (detector: string): boolean => this.#detectors.size === 0 || this.#detectors.has(detector)

  #choice({ detector, fingerprint }: Finding): RuleChoice {
    const name = RULE_OF.get(detector)
    if (name === undefined) return true
    const { part }: Rule = RULES[name]
    return part !== null && !fingerprint.startsWith(`${detector}|${part}`) ? true : this.#settings.choices[name]
  }
}

function optionsOf(choice: RuleChoice): RuleOptions {
  return typeof choice === 'boolean' ? {} : choice
}
