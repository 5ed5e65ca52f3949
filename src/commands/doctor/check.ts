import type { ConfigValues } from '../../agent/config.ts'
import type { Sampling } from '../../agent/sampling.ts'

/** `missing` is something needed and ends in exit code 1; `advice` is worth knowing; `ok` is fine. */
export type CheckState = 'ok' | 'advice' | 'missing'

export interface CheckResult {
  readonly name: string
  readonly state: CheckState
  readonly message: string
  /** How to get what is missing; null when nothing is. */
  readonly fix: string | null
}

export interface CheckEnv {
  readonly values: ConfigValues
  readonly configWarnings: readonly string[]
  readonly sampling: Sampling
}

export type Check = (env: CheckEnv) => Promise<readonly CheckResult[]>

export function ok(name: string, message: string): CheckResult {
  return { name, state: 'ok', message, fix: null }
}

export function advice(name: string, message: string, fix: string): CheckResult {
  return { name, state: 'advice', message, fix }
}

export function missing(name: string, message: string, fix: string): CheckResult {
  return { name, state: 'missing', message, fix }
}
