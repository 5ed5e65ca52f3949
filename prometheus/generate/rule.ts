/** What a rule is made of, with the two stories that test it. */

export type RuleSeverity = 'info' | 'warning' | 'critical'

/** A series as promtool writes it: its name with labels, and its values over time. */
export type Story = readonly (readonly [series: string, values: string])[]

export interface AlertRule {
  readonly name: string
  readonly severity: RuleSeverity
  readonly expr: string
  readonly forSeconds: number
  /** One line, shown in lists. */
  readonly summary: string
  /** What it means and what to do first. */
  readonly description: string
  /** The agent's detector of the same problem; null: visible only from outside. */
  readonly detector: string | null
  readonly test: {
    /** Samples are 15 s apart. */
    readonly fires: Story
    readonly quiet: Story
    /** When to look, in seconds. */
    readonly atSeconds: number
  }
}

export interface RecordingRule {
  readonly record: string
  readonly expr: string
  readonly labels?: Readonly<Record<string, string>>
  readonly test: { readonly input: Story; readonly expected: number; readonly atSeconds: number }
}

export interface RuleGroup<Rule> {
  readonly name: string
  readonly rules: readonly Rule[]
}

/** `GpuMemoryFull` → `gpu-memory-full`: the name of its runbook. */
export function runbookName(alert: string): string {
  return alert.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase()
}

/** Prometheus' notation: 90 → `90s`, 600 → `10m`. */
export function duration(seconds: number): string {
  if (seconds % 3600 === 0 && seconds > 0) return `${seconds / 3600}h`
  return seconds % 60 === 0 && seconds > 0 ? `${seconds / 60}m` : `${seconds}s`
}

const HOST = 'job="gpuwarden",instance="node1:4780"'

/** A GPU's series in a story. */
export function gpu(name: string, more = ''): string {
  return `${name}{gpu="0",uuid="GPU-1",name="H200",vendor="nvidia",${HOST}${more === '' ? '' : `,${more}`}}`
}

export function run(name: string, more = 'rank="0"'): string {
  return `${name}{run="r1",${HOST},${more}}`
}

export function agent(name: string, more = ''): string {
  return `${name}{${HOST}${more === '' ? '' : `,${more}`}}`
}
