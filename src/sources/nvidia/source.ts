/** The source over an initialized NVML: its rows, its events, its list of devices. */
import type { GpuInfo, Sample } from '../../core/model.ts'
import type { Source, SourceEnv, SourceTick } from '../../core/source-contract.ts'
import { INTEGRATED } from '../jetson/board.ts'
import { boardCompletion } from '../jetson/completion.ts'
import { CODE, codeInWords, isFault } from './codes.ts'
import { Device } from './device.ts'
import { listDriverCards } from './driver-cards.ts'
import { Events } from './events.ts'
import { Gpu, PROBE_INTERVAL_MS } from './gpu.ts'
import { type Identity, readIdentity, readSystem, type SystemInfo, unknownGpu } from './info.ts'
import type { Nvml } from './library.ts'
import type { PciCard } from './pci-cards.ts'
import { silentSample } from './sample.ts'

const DEFAULT_SLOW_INTERVAL_MS = 10_000
/** Reasons are complete only after the counters have had their second and third reading. */
const SETTLING_READS = 3

/** A GPU that the driver counts but gives no handle for. */
interface Unreachable {
  readonly info: GpuInfo
  readonly code: number
  readonly triedMs: number
}

/** `told`: that it is lost was said, and that it is back was not. */
type Row = { readonly index: number; gpu: Gpu | null; unreachable: Unreachable | null; told: boolean }

/** What NVML calls the GPU inside a Jetson that another driver drives: it knows nothing of it but the name. */
const NOT_OURS = /\(nvgpu\)$/

const buffer = Buffer.alloc(8)

export class NvidiaSource implements Source {
  readonly provenance = 'live'
  readonly #env: SourceEnv
  readonly #nvml: Nvml
  readonly #cards: readonly PciCard[]
  readonly #system: SystemInfo
  readonly #events: Events
  readonly #rows: Row[]
  #devices: readonly GpuInfo[] = []
  #structure = -1
  #revision = -1
  #reads = 0
  #open = true

  /** NVML is initialized; `count` is its number of GPUs. */
  constructor(env: SourceEnv, nvml: Nvml, count: number, cards: readonly PciCard[]) {
    this.#env = env
    this.#nvml = nvml
    this.#cards = cards
    this.#system = readSystem(nvml)
    this.#events = new Events(nvml, env)
    this.#rows = Array.from({ length: count }, (_, index) => ({ index, gpu: null, unreachable: null, told: false }))
    for (const row of this.#rows) this.#reach(row, Number.NEGATIVE_INFINITY)
    this.#publish()
  }

  devices(): readonly GpuInfo[] {
    return this.#devices
  }

  read(tick: SourceTick): readonly Sample[] {
    const samples: Sample[] = []
    for (const row of this.#rows) {
      if (row.unreachable !== null && tick.monotonicMs - row.unreachable.triedMs >= PROBE_INTERVAL_MS) this.#reach(row, tick.monotonicMs)
      if (row.unreachable !== null) samples.push(unreachableSample(tick.at, row.unreachable))
      sayReach(row, tick.at, samples)
      row.gpu?.read(tick, samples)
    }
    this.#events.read(tick, samples)
    this.#reads++
    this.#publish()
    return samples
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#events.close()
    for (const { gpu } of this.#rows) gpu?.close()
    for (const card of this.#cards) card.close()
    this.#nvml.functions.nvmlShutdown?.()
  }

  #reach(row: Row, nowMs: number): void {
    const { index } = row
    const code = this.#nvml.functions.nvmlDeviceGetHandleByIndex_v2?.(index, buffer) ?? CODE.functionNotFound
    if (code !== CODE.ok) {
      // Looked up once: a card does not change its name while it is lost.
      const info = row.unreachable?.info ?? unknownGpu(this.#listedIdentity(index), index, this.#system)
      row.unreachable = { info: { ...info, unavailable: info.name === null ? { name: codeInWords(code) } : {} }, code, triedMs: nowMs }
      return
    }
    const device = new Device(this.#nvml, buffer.readBigUInt64LE(0))
    const identity = readIdentity(device, index)
    row.unreachable = null
    if (NOT_OURS.test(identity.name ?? '')) return
    const card = this.#env.options.wake === true ? undefined : this.#cards.find((one) => one.busId === identity.pciBusId)
    row.gpu = new Gpu(
      {
        nvml: this.#nvml,
        root: this.#env.root,
        now: this.#env.now,
        slowIntervalMs: this.#env.options.slowIntervalMs ?? DEFAULT_SLOW_INTERVAL_MS,
        stagger: index / this.#rows.length,
        complete: INTEGRATED.test(identity.name ?? '') ? boardCompletion(this.#env.root) : null,
        asleep: () => card?.suspended() ?? false,
      },
      device,
      unknownGpu(identity, index, this.#system),
    )
    this.#events.register({ id: identity.id, handle: device.handle }, identity.pciBusId)
  }

  /** NVML numbers cards by their address, so a complete list shows which one this is. */
  #listedIdentity(index: number): Identity {
    const listed = listDriverCards(this.#env.root)
    const card = listed.length === this.#rows.length ? listed[index] : undefined
    const pciBusId = card?.busId ?? (this.#cards.length === this.#rows.length ? this.#cards[index]?.busId : undefined) ?? null
    return { id: card?.uuid ?? pciBusId ?? `nvidia-${index}`, name: card?.name ?? null, pciBusId }
  }

  /** A new array at once when a device came, went or was met; for new reasons alone, not before they have settled. */
  #publish(): void {
    let structure = 0
    let revision = 0
    for (const { gpu, unreachable } of this.#rows) {
      structure += (gpu?.structure ?? 0) + (unreachable === null ? 1 : 0)
      revision += gpu?.revision ?? 0
    }
    const learnt = revision !== this.#revision && this.#reads >= SETTLING_READS
    if (structure === this.#structure && !learnt) return
    this.#structure = structure
    this.#revision = revision
    this.#devices = this.#rows.flatMap(({ gpu, unreachable }) => gpu?.infos() ?? (unreachable ? [unreachable.info] : []))
  }
}

/** Once when it is lost, once when it is back. */
function sayReach(row: Row, at: number, samples: Sample[]): void {
  const lost = row.unreachable !== null && isFault(row.unreachable.code)
  if (lost === row.told) return
  row.told = lost
  const gpu = row.gpu?.id ?? row.unreachable?.info.id ?? null
  const message = row.unreachable === null ? 'the GPU answers' : codeInWords(row.unreachable.code)
  samples.push({ kind: 'event', at, gpu, event: lost ? 'lost' : 'recovered', code: null, message, origin: 'nvml' })
}

function unreachableSample(at: number, { info, code }: Unreachable): Sample {
  const state = code === CODE.gpuLost ? 'lost' : code === CODE.resetRequired ? 'reset_required' : 'error'
  return silentSample(at, info.id, state, codeInWords(code))
}
