/** What one process does on one card, added up over its open device files. */
import type { GpuProcess, GpuProcessType, Reading } from '../../core/model.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { parseFields } from './fdinfo.ts'

export const ENGINES = ['graphics', 'compute', 'encoder', 'decoder'] as const
export type Engine = (typeof ENGINES)[number]

/** Work since the file was opened. */
export interface EngineWork {
  readonly busy: number
  /** Both in the GPU's cycles; null: `busy` is in nanoseconds. */
  readonly total: Reading
  /** How many engines of this kind the card has. */
  readonly capacity: number
}

export type EngineShares = Readonly<Record<Engine, Reading>>

/** One open device file, however many descriptors share it. */
export interface DrmClient {
  readonly address: string
  /** The same number on several descriptors is the same client, to be counted once. */
  readonly client: string
  /** Of the card. */
  readonly ownBytes: Reading
  /** Of the host. */
  readonly borrowedBytes: Reading
  readonly engines: Readonly<Record<Engine, EngineWork | null>>
}

export type ParseClient = (fields: ReadonlyMap<string, string>) => DrmClient | null

const NO_SHARES: EngineShares = { graphics: null, compute: null, encoder: null, decoder: null }

export class OpenFile {
  readonly address: string
  /** Card and client: what makes it the same file. */
  readonly key: string
  readonly #parse: ParseClient
  #path: string
  /** null: closed since it was found. */
  client: DrmClient | null
  /** Of the time between the last two reads. */
  shares: EngineShares = NO_SHARES
  #readAtMs: number | null = null

  constructor(path: string, client: DrmClient, parse: ParseClient) {
    this.address = client.address
    this.key = keyOf(client)
    this.#parse = parse
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
    return (client.ownBytes ?? 0) + (client.borrowedBytes ?? 0) > 0 || ENGINES.some((engine) => hasWorked(client, engine))
  }

  read(nowMs: number): void {
    const before = this.client
    const now = this.#parse(parseFields(tryReadSmallFile(this.#path) ?? ''))
    this.client = now !== null && keyOf(now) === this.key ? now : null
    const elapsedNs = this.#readAtMs === null ? 0 : (nowMs - this.#readAtMs) * 1e6
    this.shares = before !== null && this.client !== null && elapsedNs > 0 ? sharesOf(before, this.client, elapsedNs) : NO_SHARES
    this.#readAtMs = nowMs
  }
}

export function keyOf(client: DrmClient): string {
  return `${client.address} ${client.client}`
}

function hasWorked(client: DrmClient, engine: Engine): boolean {
  return (client.engines[engine]?.busy ?? 0) > 0
}

/** Shares of the time that passed. A counter that went back (a context was closed) counts as no work. */
export function sharesOf(before: DrmClient, now: DrmClient, elapsedNs: number): EngineShares {
  const share = (engine: Engine): Reading => {
    const [from, to] = [before.engines[engine], now.engines[engine]]
    if (from === null || to === null) return null
    const passed = to.total !== null && from.total !== null ? to.total - from.total : elapsedNs
    return passed <= 0 ? null : Math.min(1, Math.max(0, (to.busy - from.busy) / passed / to.capacity))
  }
  return { graphics: share('graphics'), compute: share('compute'), encoder: share('encoder'), decoder: share('decoder') }
}

export interface CardUse {
  readonly files: OpenFile[]
  readonly computes: boolean
}

/** The processes of one card by PID. `compute` (null: unknown) and fdinfo count the same memory: the larger is taken. */
export function joinUses(open: ReadonlyMap<number, CardUse>, compute: ReadonlyMap<number, Reading>, sharesMemory: boolean): GpuProcess[] {
  const pids = [...new Set([...open.keys(), ...compute.keys()])].sort((a, b) => a - b)
  return pids.map((pid) => {
    const use = open.get(pid)
    const files = use?.files ?? []
    const shares = addShares(files)
    const held = files.reduce<Reading>((sum, { client }) => add(sum, heldBytes(client, sharesMemory)), null)
    const listed = compute.get(pid) ?? null
    const works = (engine: Engine) => files.some(({ client }) => client !== null && hasWorked(client, engine))
    return {
      pid,
      type: typeOf(works('graphics'), compute.has(pid) || use?.computes === true || works('compute')),
      memoryUsedBytes: held === null ? listed : Math.max(held, listed ?? 0),
      smRatio: atMostOne(add(shares.graphics, shares.compute)),
      memoryRatio: null,
      encoderRatio: shares.encoder,
      decoderRatio: shares.decoder,
    }
  })
}

/** Together, at most the whole of each engine. */
export function addShares(files: readonly OpenFile[]): EngineShares {
  const sum = (engine: Engine) => atMostOne(files.reduce<Reading>((all, { shares }) => add(all, shares[engine]), null))
  return { graphics: sum('graphics'), compute: sum('compute'), encoder: sum('encoder'), decoder: sum('decoder') }
}

function heldBytes(client: DrmClient | null, sharesMemory: boolean): Reading {
  if (client === null) return null
  return sharesMemory ? add(client.ownBytes, client.borrowedBytes) : client.ownBytes
}

function typeOf(graphics: boolean, computes: boolean): GpuProcessType {
  if (!computes) return 'graphics'
  return graphics ? 'both' : 'compute'
}

export function add(a: Reading, b: Reading): Reading {
  return a === null ? b : b === null ? a : a + b
}

export function atMostOne(value: Reading): Reading {
  return value === null ? null : Math.min(1, value)
}
