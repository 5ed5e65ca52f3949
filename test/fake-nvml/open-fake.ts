/** The NVIDIA source, opened in this process on the fake library. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { GpuEvent, GpuInfo, GpuSample, Sample } from '../../src/core/model.ts'
import type { Source, SourceEnv, SourceOptions } from '../../src/core/source-contract.ts'
import { nvidia } from '../../src/sources/nvidia/index.ts'
import { buildFakeNvml, type FakeNvmlScript, type FakeNvmlValues, type FakeNvmlVariant, fakeNvmlCounts, fakeNvmlScript } from './index.ts'

export interface FakeSetup {
  readonly variant?: FakeNvmlVariant
  readonly script?: FakeNvmlValues
  /** Files under the pretended root, by path. */
  readonly files?: Readonly<Record<string, string>>
  readonly options?: SourceOptions
}

export interface Fake {
  readonly env: SourceEnv
  readonly library: string
  readonly script: FakeNvmlScript
  readonly root: string
  readonly logged: string[]
  open(): Promise<Source | null>
  /** Calls since nvmlInit, by function and by `function@gpu`. */
  counts(): Promise<Readonly<Record<string, number>>>
  write(path: string, content: string): void
}

const made: { readonly root: string; readonly script: FakeNvmlScript }[] = []

process.once('exit', () => {
  for (const { root, script } of made) {
    rmSync(root, { recursive: true, force: true })
    script.remove()
  }
})

/** Points the process at a script and a root of its own; the caller closes what it opens. */
export function fake({ variant, script: values, files = {}, options = {} }: FakeSetup = {}): Fake {
  const library = buildFakeNvml(variant)
  const script = fakeNvmlScript(values)
  Object.assign(process.env, script.env)
  const root = mkdtempSync(join(tmpdir(), 'nvidia-root-'))
  made.push({ root, script })
  const logged: string[] = []
  const env: SourceEnv = {
    root,
    env: {},
    intervalMs: 1000,
    options: { nvmlPath: library, ...options },
    log: (level, message) => logged.push(`${level}: ${message}`),
    now: Date.now,
  }
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  for (const [path, content] of Object.entries(files)) write(path, content)
  return { env, library, script, root, logged, write, open: async () => nvidia.open(env), counts: () => fakeNvmlCounts(library) }
}

export class Ticker {
  readonly source: Source
  #tick = 0
  #ms = 0

  constructor(source: Source) {
    this.source = source
  }

  /** One tick, `stepMs` of pretended time after the last. */
  async tick(stepMs = 1000): Promise<Sample[]> {
    this.#ms += stepMs
    return [...(await this.source.read({ at: 1_760_000_000_000 + this.#ms, monotonicMs: this.#ms, tick: this.#tick++ }))]
  }

  async gpus(stepMs?: number): Promise<GpuSample[]> {
    return (await this.tick(stepMs)).filter((sample) => sample.kind === 'gpu')
  }

  async gpu(stepMs?: number): Promise<GpuSample> {
    return first(await this.gpus(stepMs))
  }

  async events(stepMs?: number): Promise<GpuEvent[]> {
    return (await this.tick(stepMs)).filter((sample) => sample.kind === 'event')
  }

  device(): GpuInfo {
    return first(this.source.devices())
  }
}

export function first<T>(list: readonly T[]): T {
  const [one] = list
  if (one === undefined) throw new Error('the list is empty')
  return one
}

/** Opens the source that must be there; it closes with the test. */
export async function begin(setup: FakeSetup = {}): Promise<Fake & { readonly source: Source; readonly ticker: Ticker }> {
  const prepared = fake(setup)
  const source = await prepared.open()
  if (source === null) throw new Error('the fake library was not taken for a GPU')
  onTestFinished(() => source.close())
  return { ...prepared, source, ticker: new Ticker(source) }
}
