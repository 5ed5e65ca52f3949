/** What one process does on one card, added up over its open device files. */
import type { GpuProcess, GpuProcessType, Reading } from '../../core/model.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { type DrmClient, parseFdinfo } from './fdinfo.ts'

interface Ratios {
  readonly sm: Reading
  readonly encoder: Reading
  readonly decoder: Reading
}

const NO_RATIOS: Ratios = { sm: null, encoder: null, decoder: null }

/** One client of the driver: an open device file, however many descriptors share it. */
export class OpenFile {
  readonly address: string
  /** Card and client: what makes it the same file. */
  readonly key: string
  #path: string
  /** null: closed since it was found. */
  client: DrmClient | null
  /** Over the time between the last two reads. */
  ratios: Ratios = NO_RATIOS
  #readAtMs: number | null = null

  constructor(path: string, client: DrmClient) {
    this.address = client.address
    this.key = keyOf(client)
    this.#path = path
    this.client = client
  }

  /** The same file by another descriptor. */
  at(path: string): this {
    this.#path = path
    return this
  }

  /** Holds memory or has ever worked. A library opens every card there is; that alone is no use. */
  get inUse(): boolean {
    const { client } = this
    if (client === null) return false
    const held = (client.vramBytes ?? 0) + (client.gttBytes ?? 0)
    const worked = (client.graphicsNs ?? 0) + (client.computeNs ?? 0) + (client.encoderNs ?? 0) + (client.decoderNs ?? 0)
    return held > 0 || worked > 0
  }

  read(nowMs: number): void {
    const before = this.client
    const now = parseFdinfo(tryReadSmallFile(this.#path) ?? '')
    this.client = now !== null && keyOf(now) === this.key ? now : null
    const elapsedNs = this.#readAtMs === null ? 0 : (nowMs - this.#readAtMs) * 1e6
    this.ratios = before !== null && this.client !== null && elapsedNs > 0 ? ratiosOf(before, this.client, elapsedNs) : NO_RATIOS
    this.#readAtMs = nowMs
  }
}

export function keyOf(client: DrmClient): string {
  return `${client.address} ${client.client}`
}

/** Shares of the time that passed. A counter that went back (a context was closed) counts as no work. */
export function ratiosOf(before: DrmClient, now: DrmClient, elapsedNs: number): Ratios {
  const share = (from: Reading, to: Reading): Reading =>
    from === null || to === null ? null : Math.min(1, Math.max(0, (to - from) / elapsedNs))
  return {
    sm: share(add(before.graphicsNs, before.computeNs), add(now.graphicsNs, now.computeNs)),
    encoder: share(before.encoderNs, now.encoderNs),
    decoder: share(before.decoderNs, now.decoderNs),
  }
}

export interface CardUse {
  readonly files: OpenFile[]
  readonly computes: boolean
}

/** The processes of one card by PID. kfd (`compute`, null: unknown) and fdinfo count the same memory: the larger is taken. */
export function joinUses(open: ReadonlyMap<number, CardUse>, compute: ReadonlyMap<number, Reading>, apu: boolean): GpuProcess[] {
  const pids = [...new Set([...open.keys(), ...compute.keys()])].sort((a, b) => a - b)
  return pids.map((pid) => {
    let memory: Reading = compute.get(pid) ?? null
    let held: Reading = null
    let [sm, encoder, decoder]: Reading[] = [null, null, null]
    let graphics = false
    const use = open.get(pid)
    let computes = compute.has(pid) || use?.computes === true
    for (const { client, ratios } of use?.files ?? []) {
      if (client === null) continue
      held = add(held, apu ? add(client.vramBytes, client.gttBytes) : client.vramBytes)
      sm = add(sm ?? null, ratios.sm)
      encoder = add(encoder ?? null, ratios.encoder)
      decoder = add(decoder ?? null, ratios.decoder)
      if ((client.graphicsNs ?? 0) > 0) graphics = true
      if ((client.computeNs ?? 0) > 0) computes = true
    }
    if (held !== null) memory = Math.max(held, memory ?? 0)
    return {
      pid,
      type: typeOf(graphics, computes),
      memoryUsedBytes: memory,
      smRatio: atMostOne(sm ?? null),
      memoryRatio: null,
      encoderRatio: atMostOne(encoder ?? null),
      decoderRatio: atMostOne(decoder ?? null),
    }
  })
}

function typeOf(graphics: boolean, computes: boolean): GpuProcessType {
  if (!computes) return 'graphics'
  return graphics ? 'both' : 'compute'
}

function add(a: Reading, b: Reading): Reading {
  return a === null ? b : b === null ? a : a + b
}

function atMostOne(value: Reading): Reading {
  return value === null ? null : Math.min(1, value)
}
