/** What every source must do, whatever the hardware. Each source's test runs this suite over its own fixture. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GpuSample, HostSample, Sample } from '../core/model.ts'
import { GPU_FIELDS } from '../core/record.ts'
import type { Source, SourceEnv, SourceKind } from '../core/source-contract.ts'

export interface ContractSubject {
  readonly kind: SourceKind
  /** An environment where the hardware (or file) is there. */
  present(): SourceEnv | Promise<SourceEnv>
  /** An environment where it is not; omitted for sources that are always there. */
  absent?(): SourceEnv | Promise<SourceEnv>
  /** How many GPUs `present` shows; 0 for a source without GPUs. */
  readonly gpus: number
}

export function sourceEnv(overrides: Partial<SourceEnv> = {}): SourceEnv {
  return { root: '/', env: {}, intervalMs: 1000, options: {}, log: () => undefined, now: Date.now, ...overrides }
}

/** Ticks a source as the sampler does, `count` times, `stepMs` apart in pretended time. */
export async function readTicks(source: Source, count: number, start = 1_760_000_000_000, stepMs = 1000): Promise<Sample[][]> {
  const ticks: Sample[][] = []
  for (let tick = 0; tick < count; tick++) {
    ticks.push([...(await source.read({ at: start + tick * stepMs, monotonicMs: tick * stepMs, tick }))])
  }
  return ticks
}

export function sourceContract(name: string, subject: ContractSubject): void {
  describe(`source contract: ${name}`, () => {
    let source: Source
    let ticks: Sample[][]
    beforeAll(async () => {
      const opened = await subject.kind.open(await subject.present())
      if (opened === null) throw new Error(`${name}: open() found nothing in the environment that should have it`)
      source = opened
      ticks = await readTicks(source, 3)
    })
    afterAll(async () => {
      await source?.close()
    })

    const gpuSamples = () => ticks.flat().filter((sample): sample is GpuSample => sample.kind === 'gpu')

    it('lists its devices with stable, distinct identities', () => {
      const devices = source.devices()
      expect(devices.length).toBe(subject.gpus)
      expect(new Set(devices.map((device) => device.id)).size).toBe(devices.length)
      expect(new Set(devices.map((device) => device.label)).size).toBe(devices.length)
      expect(source.devices()).toBe(devices)
    })

    it('gives every reading as a finite number or null, never undefined or NaN', () => {
      for (const sample of gpuSamples())
        for (const field of GPU_FIELDS) {
          const value = sample[field]
          expect(value === null || Number.isFinite(value), `${field} is ${String(value)}`).toBe(true)
        }
    })

    it('keeps ratios between 0 and 1 and counts non-negative', () => {
      for (const sample of gpuSamples())
        for (const field of GPU_FIELDS) {
          const value = sample[field]
          if (value === null) continue
          if (field.endsWith('Ratio')) expect(value, field).toBeLessThanOrEqual(1)
          if (!field.endsWith('Celsius')) expect(value, field).toBeGreaterThanOrEqual(0)
        }
    })

    it('reports only GPUs it has listed, in the order of time', () => {
      const known = new Set(source.devices().map((device) => device.id))
      let last = Number.NEGATIVE_INFINITY
      for (const sample of ticks.flat()) {
        expect(sample.at).toBeGreaterThanOrEqual(last)
        last = sample.at
        if (sample.kind === 'gpu') expect(known.has(sample.gpu)).toBe(true)
      }
    })

    it('never claims more memory in use than there is', () => {
      for (const sample of gpuSamples())
        if (sample.memoryUsedBytes !== null && sample.memoryTotalBytes !== null)
          expect(sample.memoryUsedBytes).toBeLessThanOrEqual(sample.memoryTotalBytes)
    })

    it('gives samples that survive JSON unchanged', () => {
      for (const sample of ticks.flat()) expect(JSON.parse(JSON.stringify(sample))).toEqual(sample)
    })

    it('has at most one entry for a process on a GPU', () => {
      for (const sample of gpuSamples()) {
        const pids = (sample.processes ?? []).map((process) => process.pid)
        expect(new Set(pids).size).toBe(pids.length)
      }
      for (const sample of ticks.flat().filter((one): one is HostSample => one.kind === 'host'))
        expect(new Set(sample.processes.map((one) => one.pid)).size).toBe(sample.processes.length)
    })

    it('can be closed twice', async () => {
      const second = await subject.kind.open(await subject.present())
      await second?.close()
      await second?.close()
    })

    if (subject.absent)
      it('is null, not an error, where there is no such hardware', async () => {
        expect(await subject.kind.open(await (subject.absent as () => SourceEnv | Promise<SourceEnv>)())).toBe(null)
      })
  })
}
