/** What happened, from the driver's event queue and from the kernel's log, each thing once. */
import type { GpuEvent, Sample } from '../../core/model.ts'
import type { SourceEnv, SourceTick } from '../../core/source-contract.ts'
import { KernelLogFollower } from '../kernel-log.ts'
import { CODE, codeInWords } from './codes.ts'
import { decodeEvent, EVENT_BYTES, readUint64 } from './layouts.ts'
import type { Nvml, NvmlFunction } from './library.ts'
import { xidInWords } from './xid.ts'
import { type KernelXid, XID_LINES } from './xid-lines.ts'

const EVENT = { correctedEcc: 0x1, uncorrectedEcc: 0x2, xid: 0x8, unavailable: 0x4000, recovery: 0x8000 } as const
const WANTED = EVENT.correctedEcc | EVENT.uncorrectedEcc | EVENT.xid | EVENT.unavailable | EVENT.recovery

const MAX_EVENTS_PER_TICK = 32
const SAME_XID_MS = 5000
/** A queue that fails is left alone for so long. */
const RETRY_MS = 10_000

interface Known {
  readonly id: string
  readonly handle: bigint
}

const RECOVERY_ACTIONS = ['none', 'reset the GPU', 'reboot the node', 'drain peer-to-peer traffic', 'drain, then reset the GPU']

const buffer = Buffer.alloc(EVENT_BYTES)

export class Events {
  readonly #nvml: Nvml
  readonly #log: SourceEnv['log']
  readonly #kernel: KernelLogFollower<KernelXid>
  readonly #wait: NvmlFunction | null
  #set: bigint | null
  #retryMs = Number.NEGATIVE_INFINITY
  readonly #byHandle = new Map<bigint, string>()
  readonly #byBusId = new Map<string, string>()
  #recent: GpuEvent[] = []

  constructor(nvml: Nvml, env: SourceEnv) {
    this.#nvml = nvml
    this.#log = env.log
    this.#kernel = new KernelLogFollower(env, { ...XID_LINES, readFile: nvml.readFile })
    this.#wait = nvml.functions.nvmlEventSetWait_v2 ?? nvml.functions.nvmlEventSetWait
    const created = this.#wait !== null && nvml.functions.nvmlEventSetCreate?.(buffer) === CODE.ok
    this.#set = created ? buffer.readBigUInt64LE(0) : null
  }

  register({ id, handle }: Known, pciBusId: string | null): void {
    if (pciBusId !== null) this.#byBusId.set(pciBusId, id)
    this.#byHandle.set(handle, id)
    const { nvmlDeviceGetSupportedEventTypes: supported, nvmlDeviceRegisterEvents: registerEvents } = this.#nvml.functions
    if (this.#set === null || supported === null || registerEvents === null) return
    if (supported(handle, buffer) !== CODE.ok) return
    const mask = (readUint64(buffer, 0) ?? 0) & WANTED
    if (mask === 0) return
    const code = registerEvents(handle, mask, this.#set)
    if (code !== CODE.ok) this.#log('info', 'the driver does not report events of a GPU', { gpu: id, reason: codeInWords(code) })
  }

  read(tick: SourceTick, samples: Sample[]): void {
    this.#recent = this.#recent.filter((event) => tick.at - event.at < SAME_XID_MS)
    if (this.#set !== null && tick.monotonicMs >= this.#retryMs) this.#drain(this.#set, tick, samples)
    for (const { pciBusId, code, detail } of this.#kernel.read(tick)) {
      const gpu = pciBusId === null ? null : (this.#byBusId.get(pciBusId) ?? null)
      const message = detail === '' ? xidInWords(code) : `${xidInWords(code)} (${detail})`
      this.#add({ kind: 'event', at: tick.at, gpu, event: 'xid', code, message, origin: 'kmsg' }, samples)
    }
  }

  close(): void {
    this.#kernel.close()
    if (this.#set !== null) this.#nvml.functions.nvmlEventSetFree?.(this.#set)
    this.#set = null
  }

  #drain(set: bigint, tick: SourceTick, samples: Sample[]): void {
    for (let i = 0; i < MAX_EVENTS_PER_TICK; i++) {
      const code = this.#wait?.(set, buffer, 0) ?? CODE.timeout
      if (code === CODE.timeout) return
      if (code !== CODE.ok) {
        this.#retryMs = tick.monotonicMs + RETRY_MS
        return
      }
      const { handle, type, data } = decodeEvent(buffer)
      const known = describe(type, data)
      if (known) this.#add({ kind: 'event', at: tick.at, gpu: this.#byHandle.get(handle) ?? null, origin: 'nvml', ...known }, samples)
    }
  }

  /** The driver and the kernel report the same XID: the second report within five seconds is ignored. */
  #add(event: GpuEvent, samples: Sample[]): void {
    if (event.event === 'xid') {
      if (this.#recent.some((one) => one.gpu === event.gpu && one.code === event.code && one.origin !== event.origin)) return
      this.#recent.push(event)
    }
    samples.push(event)
  }
}

function describe(type: number, data: number | null): Pick<GpuEvent, 'event' | 'code' | 'message'> | null {
  switch (type) {
    case EVENT.xid:
      return { event: 'xid', code: data, message: xidInWords(data) }
    case EVENT.correctedEcc:
      return { event: 'ecc_corrected', code: null, message: 'a single-bit memory error was corrected' }
    case EVENT.uncorrectedEcc:
      return { event: 'ecc_uncorrected', code: null, message: 'a memory error could not be corrected' }
    case EVENT.unavailable:
      return { event: 'gpu_unavailable', code: data, message: 'the driver says that the GPU is not available' }
    case EVENT.recovery:
      return {
        event: 'recovery_action',
        code: data,
        message: `the GPU asks for recovery: ${RECOVERY_ACTIONS[data ?? -1] ?? `action ${data}`}`,
      }
    default:
      return null
  }
}
