import type { ConfigValues } from '../../agent/config.ts'
import type { Sampling } from '../../agent/sampling.ts'
import type { DriverFaultKind } from '../../core/source-contract.ts'

/** `missing` is something needed and ends in exit code 1; `advice` is worth knowing; `ok` is fine. */
export type CheckState = 'ok' | 'advice' | 'missing'

/** What a check of a GPU found, for programs: `driver_…` is one of the faults of a driver. */
export type CheckKind = 'gpus' | 'given_to_vm' | 'display_only' | 'no_gpu_found' | `driver_${DriverFaultKind}`

export interface CheckResult {
  readonly name: string
  readonly state: CheckState
  /** Only of checks that have several outcomes. */
  readonly kind?: CheckKind
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

export function advice(name: string, message: string, fix: string | null): CheckResult {
  return { name, state: 'advice', message, fix }
}

export function missing(name: string, message: string, fix: string | null): CheckResult {
  return { name, state: 'missing', message, fix }
}
