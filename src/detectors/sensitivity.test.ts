import { describe, expect, it } from 'vitest'
import type { DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import { feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, START, step } from './inputs.fixture.ts'
import { leak } from './leak.ts'
import { lossSpike } from './loss-spike.ts'
import { oom } from './oom.ts'
import { random } from './random.fixture.ts'
import { SENSITIVITIES, type Sensitivity, sensitivityOptions } from './sensitivity.ts'
import { straggler } from './straggler.ts'

const SIZES = Array.from({ length: 16 }, (_, i) => i + 1)

/** A server of requests, one reading a minute; `added` is what grows, as a share of the GPU. */
function serving(seed: number, added: (minute: number) => number): DetectorInput[] {
  const { uniform } = random(seed)
  const inputs: DetectorInput[] = [device()]
  for (let minute = 0; minute < 1000; minute++) {
    const used = Math.min(0.98, 0.5 - 0.25 * uniform() ** 2 + added(minute))
    inputs.push(gpu(START + minute * 60_000, { memoryUsedBytes: used * 80 * GIB, processes: null }))
  }
  return inputs
}

/** How many of the series raise an alarm. */
function count(
  kind: DetectorKind<never>,
  name: keyof ReturnType<typeof sensitivityOptions>,
  sensitivity: Sensitivity,
  series: DetectorInput[][],
): number {
  const options = { ...(kind.defaults as object), ...sensitivityOptions(sensitivity)[name] } as never
  return series.filter((inputs) => alarms(feed(kind.create(options), inputs)).length > 0).length
}

function expectRising(kind: DetectorKind<never>, name: keyof ReturnType<typeof sensitivityOptions>, series: DetectorInput[][]): void {
  const [low = 0, normal = 0, high = 0] = SENSITIVITIES.map((one) => count(kind, name, one, series))
  expect(low).toBeLessThanOrEqual(normal)
  expect(normal).toBeLessThanOrEqual(high)
  expect(low).toBeLessThan(high)
}

describe('sensitivity', () => {
  it('is the defaults when normal', () => {
    const options = sensitivityOptions('normal')
    expect(leak.defaults).toMatchObject(options.leak)
    expect(oom.defaults).toMatchObject(options.oom)
    expect(lossSpike.defaults).toMatchObject(options.loss_spike)
    expect(straggler.defaults).toMatchObject(options.straggler)
  })

  it('finds more leaks the higher it is', () => {
    expectRising(
      leak as never,
      'leak',
      SIZES.map((size) => serving(size, (minute) => (0.025 * size * Math.max(0, minute - 400)) / 600)),
    )
  })

  it('takes more growth that ends by itself for a leak the higher it is', () => {
    expectRising(
      leak as never,
      'leak',
      SIZES.map((size) => serving(size, (minute) => (0.02 * size * Math.min(200, Math.max(0, minute - 400))) / 200)),
    )
  })

  it('finds smaller rises of the loss and slower ranks the higher it is', () => {
    const losses = SIZES.map((size) => {
      const { normal } = random(size)
      return Array.from({ length: 400 }, (_, i) => step(START + i * 1000, i, { loss: 2 + 0.05 * normal() + (i >= 395 ? 0.025 * size : 0) }))
    })
    expectRising(lossSpike as never, 'loss_spike', losses)
    const ranks = SIZES.map((size) => {
      const { normal } = random(size)
      const times = (number: number, rank: number) => Math.exp(0.02 * normal()) * (rank === 3 && number >= 60 ? 1 + 0.015 * size : 1)
      return Array.from({ length: 64 * 8 }, (_, i) => step(START + i * 125, i >> 3, { rank: i % 8, stepSeconds: times(i >> 3, i % 8) }))
    })
    expectRising(straggler as never, 'straggler', ranks)
  })
})
