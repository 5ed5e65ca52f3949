/** One GPU, tick after tick: read, asleep, or gone and probed now and then. */
import type { GpuEvent, GpuInfo, GpuSample, GpuState, Sample } from '../../core/model.ts'
import { NO_READINGS } from '../../core/record.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import { CODE, codeInWords, isFault } from './codes.ts'
import type { Device, Readings } from './device.ts'
import { fastReader, type TierReader } from './fast.ts'
import { type Gpm, openGpm } from './gpm.ts'
import { driverBranch, readInfo, readMigMode } from './info.ts'
import type { Nvml } from './library.ts'
import { MemoryReader } from './memory.ts'
import { MigInstances } from './mig.ts'
import { ProcessUtilization } from './process-utilization.ts'
import { Processes } from './processes.ts'
import { rareReader } from './rare.ts'
import { emptyReadings, sampleOf, silentSample } from './sample.ts'
import { slowReader } from './slow.ts'

export const PROBE_INTERVAL_MS = 10_000
/** Shares of processes are needed sooner than the other expensive readings; a 1.7 ms call on an H200. */
const PROCESSES_INTERVAL_MS = 5000
/** So many slow readings from one look at what hardly ever changes to the next: half a minute. */
const RARE_EVERY = 3
const MIG_REASON = 'MIG is enabled: see the instances'

export interface GpuEnv {
  readonly nvml: Nvml
  readonly root: string
  readonly now: () => number
  readonly slowIntervalMs: number
  /** Share of the slow interval by which this GPU is delayed, so that expensive calls do not fall into one tick. */
  readonly stagger: number
  /** Adds what is known of this GPU from elsewhere; null: nothing is. */
  readonly complete: ((sample: GpuSample) => GpuSample) | null
  /** true while the card sleeps: no call is made then. */
  readonly asleep: () => boolean
}

interface Readers {
  readonly fast: TierReader
  readonly slow: ReturnType<typeof slowReader>
  readonly rare: ReturnType<typeof rareReader>
  readonly gpm: Gpm | null
  readonly processes: Processes | null
}

const scratch = Buffer.alloc(8)

export class Gpu {
  readonly device: Device
  /** Changes when devices() must be sent again at once. */
  structure = 0
  readonly #env: GpuEnv
  readonly #memory: MemoryReader
  readonly #instances: MigInstances
  readonly #readings: Readings = emptyReadings()
  #info: GpuInfo
  #readers: Readers | null = null
  #slowAt: number | null = null
  #nextSlowMs = Number.NEGATIVE_INFINITY
  #nextProcessesMs = Number.NEGATIVE_INFINITY
  #slowReadings = 0
  #told = false
  #probedMs = 0

  /** `base` is what is known without touching more than the handle. */
  constructor(env: GpuEnv, device: Device, base: GpuInfo) {
    this.#env = env
    this.device = device
    this.#info = base
    this.#memory = new MemoryReader(device, env.root)
    this.#instances = new MigInstances(device, env.root)
    if (!env.asleep()) this.#acquaint()
  }

  get id(): string {
    return this.#info.id
  }

  /** Changes with every new reason. */
  get revision(): number {
    return this.device.revision + this.#instances.revision
  }

  infos(): GpuInfo[] {
    return [{ ...this.#info, unavailable: this.device.reasons() }, ...this.#instances.infos()]
  }

  read(tick: SourceTick, samples: Sample[]): void {
    const { device } = this
    if (this.#env.asleep()) this.#silence(tick, 'suspended', 'the card is asleep and was not woken', samples)
    else if (device.fault !== null && !this.#probe(tick, samples)) this.#sayFault(tick, device.fault, samples)
    else this.#readAwake(tick, samples)
  }

  #readAwake(tick: SourceTick, samples: Sample[]): void {
    const { device } = this
    device.beginTick()
    if (this.#readers === null) this.#acquaint()
    const slow = tick.monotonicMs >= this.#nextSlowMs
    const seldom = tick.monotonicMs >= this.#nextProcessesMs
    if (seldom) this.#beginSeldom(tick)
    if (slow) this.#readSlow(tick)
    const readers = this.#readers
    readers?.fast(this.#readings, tick.monotonicMs)
    readers?.gpm?.read(this.#readings, slow)
    const processes = readers?.processes?.read(seldom, tick.monotonicMs) ?? null
    const failure = device.totalFailure()
    if (device.fault !== null) this.#lose(tick, device.fault, samples)
    else if (failure !== null) this.#silence(tick, 'error', codeInWords(failure), samples)
    else {
      const sample = sampleOf(tick.at, this.#info.id, this.#readings, this.#slowAt, processes)
      samples.push(this.#env.complete?.(sample) ?? sample)
      this.#instances.read(tick.at, tick.monotonicMs, slow, samples)
    }
  }

  close(): void {
    this.#readers?.gpm?.close()
    this.#instances.close()
    this.#memory.close()
  }

  /** Static facts, once; and the readers that fit them. */
  #acquaint(): void {
    this.#info = readInfo(this.device, this.#info, this.#memory)
    this.#instances.refresh(this.#info)
    this.structure++
    this.#equip()
  }

  #equip(): void {
    const { device } = this
    const mig = this.#info.migMode === 'enabled'
    this.#readers?.gpm?.close()
    if (mig) for (const field of ['utilizationRatio', 'memoryUtilizationRatio', 'processes']) device.explain(field, MIG_REASON)
    const take = device.nvml.functions.nvmlGpmSampleGet
    const gpm = openGpm(device, device, take === null ? null : (sample) => take(device.handle, sample))
    const countsTraffic = () => gpm === null || !gpm.gives('pcieTxBytesPerSecond')
    let measuresTraffic = false
    this.#readers = {
      fast: fastReader(device, this.#memory, { mig, countsTraffic }),
      slow: slowReader(device),
      rare: rareReader(device, {
        hasNewFields: driverBranch(this.#info) >= 580,
        // Once the counters are known to be missing it stays so, whatever is said of the fields later.
        measuresTraffic: () => (measuresTraffic ||= !mig && countsTraffic() && device.lacks('pcieTxBytesPerSecond')),
      }),
      gpm,
      processes: mig ? null : new Processes(device, new ProcessUtilization(device, this.#env.now())),
    }
  }

  #readSlow(tick: SourceTick): void {
    this.#nextSlowMs = this.#after(tick, this.#env.slowIntervalMs)
    const isRare = this.#slowReadings++ % RARE_EVERY === 0
    const readers = this.#readers
    if (readers !== null) this.#learn(readers.slow(this.#readings, tick.monotonicMs))
    if (readers !== null && isRare) this.#learn(readers.rare(this.#readings, tick.monotonicMs))
    this.#slowAt = tick.at
  }

  /** Facts that can change while we watch: told again only when they did. */
  #learn(facts: Partial<GpuInfo>): void {
    if (this.device.fault !== null) return
    const info = { ...this.#info, ...facts }
    const isNew = (Object.keys(facts) as (keyof GpuInfo)[]).some((name) => JSON.stringify(info[name]) !== JSON.stringify(this.#info[name]))
    if (!isNew) return
    this.#info = info
    this.structure++
  }

  #beginSeldom(tick: SourceTick): void {
    this.#nextProcessesMs = this.#after(tick, Math.min(this.#env.slowIntervalMs, PROCESSES_INTERVAL_MS))
    if (this.#slowReadings > 0 && this.#info.migMode !== null) this.#checkPartition()
  }

  /** The cards part after their first reading. */
  #after(tick: SourceTick, intervalMs: number): number {
    return tick.monotonicMs + intervalMs * (this.#slowReadings === 0 ? 1 + this.#env.stagger : 1)
  }

  /** MIG can be switched, and instances made and removed, while we watch. */
  #checkPartition(): void {
    const migMode = readMigMode(this.device)
    if (migMode !== null && migMode !== this.#info.migMode) {
      this.#info = { ...this.#info, migMode }
      Object.assign(this.#readings, NO_READINGS)
      if (migMode === 'disabled')
        for (const field of ['utilizationRatio', 'memoryUtilizationRatio', 'processes']) this.device.unexplain(field)
      this.#equip()
      this.structure++
    }
    if (this.#instances.refresh(this.#info)) this.structure++
  }

  #lose(tick: SourceTick, code: number, samples: Sample[]): void {
    this.#probedMs = tick.monotonicMs
    this.#sayFault(tick, code, samples)
    this.#told = true
    samples.push(this.#event(tick, 'lost', `${codeInWords(code)}: skipped, and tried again every ${PROBE_INTERVAL_MS / 1000} s`))
  }

  #sayFault(tick: SourceTick, code: number, samples: Sample[]): void {
    this.#silence(tick, code === CODE.resetRequired ? 'reset_required' : 'lost', codeInWords(code), samples)
  }

  /** One cheap call every ten seconds; true when the GPU is back. */
  #probe(tick: SourceTick, samples: Sample[]): boolean {
    const { device } = this
    if (!this.#told) this.#announceFaultAtOpen(tick, samples)
    if (tick.monotonicMs - this.#probedMs < PROBE_INTERVAL_MS) return false
    this.#probedMs = tick.monotonicMs
    const code = device.nvml.functions.nvmlDeviceGetTemperature?.(device.handle, 0, scratch) ?? CODE.functionNotFound
    if (isFault(code)) device.fault = code
    if (code !== CODE.ok && code !== CODE.notSupported) return false
    device.fault = null
    this.#acquaint()
    if (device.fault !== null) return false
    this.#told = false
    samples.push(this.#event(tick, 'recovered', 'the GPU answers again'))
    return true
  }

  #announceFaultAtOpen(tick: SourceTick, samples: Sample[]): void {
    this.#told = true
    this.#probedMs = tick.monotonicMs
    samples.push(this.#event(tick, 'lost', codeInWords(this.device.fault ?? CODE.gpuLost)))
  }

  #forgetTimes(): void {
    this.#nextSlowMs = this.#nextProcessesMs = Number.NEGATIVE_INFINITY
    this.#slowReadings = 0
  }

  #event(tick: SourceTick, event: GpuEvent['event'], message: string): GpuEvent {
    return { kind: 'event', at: tick.at, gpu: this.#info.id, event, code: null, message, origin: 'nvml' }
  }

  #silence(tick: SourceTick, state: GpuState, reason: string, samples: Sample[]): void {
    Object.assign(this.#readings, NO_READINGS)
    this.#slowAt = null
    // Back from sleep or loss, everything is read again; a GPU that answers with errors gets no extra expensive calls.
    if (state !== 'error') this.#forgetTimes()
    samples.push(silentSample(tick.at, this.#info.id, state, reason))
    this.#instances.silence((id) => silentSample(tick.at, id, state, reason), samples)
  }
}
