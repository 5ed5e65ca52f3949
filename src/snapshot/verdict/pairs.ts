/** Which devices of two files are compared. */
import { EXIT, Failure } from '../../core/failure.ts'
import type { DeviceAnalysis } from './device-analysis.ts'

/** By index; one device alone is compared with the other one, whatever they are called. */
export function pairsOf(before: readonly DeviceAnalysis[], after: readonly DeviceAnalysis[]): [DeviceAnalysis, DeviceAnalysis][] {
  if (before.length === 1 && after.length === 1) return [[before[0] as DeviceAnalysis, after[0] as DeviceAnalysis]]
  const pairs = after.flatMap((young): [DeviceAnalysis, DeviceAnalysis][] => {
    const old = before.find(({ device }) => device.index === young.device.index)
    return old ? [[old, young]] : []
  })
  if (pairs.length > 0) return pairs
  throw new Failure('the two files have no GPU in common: choose with --gpu', { exitCode: EXIT.usage })
}
