/** How old readings are, and whether they may be shown as current: for the agent and every screen. */
import type { GpuInfo, Reading, SourceHealth } from '../model.ts'

type Healths = readonly SourceHealth[]

/** `source` null: only a picture was seen, which does not name it; then it follows from the GPU. */
export function healthOfGpu(source: string | null, info: GpuInfo, health: Healths): SourceHealth | undefined {
  return healthOf(source, info.provenance === 'simulated' ? ['demo'] : [info.vendor], health)
}

export function healthOfHost(source: string | null, health: Healths): SourceHealth | undefined {
  return healthOf(source, ['host'], health)
}

function healthOf(source: string | null, usual: readonly string[], health: Healths): SourceHealth | undefined {
  if (source !== null) return health.find((one) => one.source === source)
  return health.find(({ provenance }) => provenance === 'replay') ?? health.find((one) => usual.includes(one.source))
}

/** `at`: when it was measured. A recording ages from the moment it was played. */
export function ageOf(at: number, arrivedAt: number, isPlayedBack: boolean, now: number): number {
  return Math.max(0, now - (isPlayedBack ? arrivedAt : at))
}

/** Not live: two intervals and a deadline without a sample, or a source that is not ok. */
export function isLive(health: SourceHealth | undefined, ageMs: Reading): boolean {
  if (!health || ageMs === null) return false
  return health.state === 'ok' && ageMs <= 2 * health.intervalMs + health.deadlineMs
}
