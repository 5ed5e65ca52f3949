/** What watching costs the driver: NVML calls in each second, counted by the fake library over two minutes of pretended time. */
import { describe, expect, it } from 'vitest'
import type { FakeNvmlValues } from '../../../test/fake-nvml/index.ts'
import { begin } from '../../../test/fake-nvml/open-fake.ts'

const SECONDS = 120

async function callsPerSecond(script: FakeNvmlValues, stepMs: number): Promise<{ all: number; named: (name: string) => number }> {
  const { ticker, counts } = await begin({ script: { gpus: 1, ...script } })
  for (let ms = 0; ms < 20_000; ms += stepMs) await ticker.tick(stepMs)
  const before = await counts()
  for (let ms = 0; ms < SECONDS * 1000; ms += stepMs) await ticker.tick(stepMs)
  const after = await counts()
  const named = (name: string) => ((after[name] ?? 0) - (before[name] ?? 0)) / SECONDS
  const all = Object.keys(after).reduce((sum, name) => sum + (name.includes('@') ? 0 : named(name)), 0)
  return { all, named }
}

const NO_COUNTERS = { gpm: 0, field_ret: '197:3,198:3' }

/** `most`: 5% above what the calls of every tick, and the first expensive ones, cost before anything rare was read. */
describe('NVML calls per second', () => {
  it.each([
    ['a card of today', {}, 1000, 17.7],
    ['a card of today', {}, 100, 170.7],
    ['one with 18 NVLinks', { nvlinks: 18 }, 1000, 17.7],
    ['one before Hopper', NO_COUNTERS, 1000, 16.7],
    ['one before Hopper', NO_COUNTERS, 100, 160.7],
    ['three MIG instances', { mig: 3 }, 1000, 31.7],
    ['three MIG instances', { mig: 3 }, 100, 292.7],
  ])('%s, %j, every %i ms', async (_, script, stepMs, base) => {
    const { all } = await callsPerSecond(script, stepMs)
    expect(all).toBeGreaterThan(base * 0.9)
    expect(all).toBeLessThan(base * 1.05)
  })

  it('asks for the throughput of PCIe, for which the driver waits 20 ms, twice in half a minute and only without another way', async () => {
    for (const stepMs of [1000, 100]) {
      expect((await callsPerSecond(NO_COUNTERS, stepMs)).named('nvmlDeviceGetPcieThroughput')).toBeCloseTo(2 / 30, 2)
      expect((await callsPerSecond({}, stepMs)).named('nvmlDeviceGetPcieThroughput')).toBe(0)
      expect((await callsPerSecond({ gpm: 0 }, stepMs)).named('nvmlDeviceGetPcieThroughput')).toBe(0)
    }
  })
})
