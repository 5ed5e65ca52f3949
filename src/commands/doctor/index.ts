import type { Check, CheckEnv, CheckResult } from './check.ts'
import { checkGpus, checkPermissions } from './gpus.ts'
import { checkConfiguration, checkDisk, checkNativeLibrary, checkNode, checkPort } from './surroundings.ts'

const CHECKS: readonly Check[] = [checkNode, checkConfiguration, checkNativeLibrary, checkGpus, checkPermissions, checkPort, checkDisk]

export async function examine(env: CheckEnv): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  for (const check of CHECKS) results.push(...(await check(env)))
  return results
}
