/** What the agent and its samplers cost: from two answers, because the agent sends only counters. */
import type { Reading } from '../../../../src/core/model.ts'
import type { HealthAnswer } from '../../answers.ts'

export interface Cost {
  readonly name: string
  readonly pid: Reading
  readonly cpuRatio: Reading
  /** Share of one core since its start, where the start is known. */
  readonly meanCpuRatio: Reading
  readonly residentBytes: Reading
}

/** The agent first, then each sampler. A counter that was reset in between says nothing. */
export function costsOf(before: HealthAnswer | null, now: HealthAnswer): readonly Cost[] {
  const elapsedSeconds = before === null ? 0 : (now.at - before.at) / 1000
  const agent: Cost = {
    name: 'agent',
    pid: now.self.pid,
    cpuRatio: before?.self.runId === now.self.runId ? shareOf(before.self.cpuSeconds, now.self.cpuSeconds, elapsedSeconds) : null,
    meanCpuRatio: shareOf(0, now.self.cpuSeconds, (now.at - now.self.startedAt) / 1000),
    residentBytes: now.self.residentBytes,
  }
  const samplers = now.sources.map((source): Cost => {
    const earlier = before?.sources.find((one) => one.source === source.source && one.pid === source.pid)
    return {
      name: `sampler ${source.source}`,
      pid: source.pid,
      cpuRatio: earlier ? shareOf(earlier.cpuSeconds, source.cpuSeconds, elapsedSeconds) : null,
      meanCpuRatio: null,
      residentBytes: source.residentBytes,
    }
  })
  return [agent, ...samplers]
}

function shareOf(from: Reading, to: Reading, seconds: number): Reading {
  return from === null || to === null || seconds <= 0 || to < from ? null : (to - from) / seconds
}

/** Together; null as long as one of them is not known. */
export function totalOf(costs: readonly Cost[]): { readonly cpuRatio: Reading; readonly residentBytes: Reading } {
  const sum = (pick: (cost: Cost) => Reading) => {
    const values = costs.map(pick)
    return values.includes(null) ? null : values.reduce<number>((total, value) => total + (value ?? 0), 0)
  }
  return { cpuRatio: sum(({ cpuRatio }) => cpuRatio), residentBytes: sum(({ residentBytes }) => residentBytes) }
}
