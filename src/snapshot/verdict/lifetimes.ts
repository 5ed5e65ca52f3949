/**
 * When each allocation began and ended. The ring of events may have lost its start, so that some are freed without having been
 * made; what the dump says is in use at the end tells the rest.
 */
import { ACTION, PENDING } from '../read/keys.ts'
import { type Device, eachActiveBlock } from './device.ts'
import type { Trace } from './trace.ts'

/** No partner, or none that was seen. */
export const NONE = -1

/** Allocations from before the first event. */
export interface EarlyBlocks {
  readonly addresses: number[]
  readonly sizes: number[]
  /** Where they were made; of those freed in the window only what the free tells. */
  readonly stacks: number[]
  readonly streams: number[]
  /** Index of the event that freed them; `trace.count` where none did. */
  readonly freedAt: number[]
}

export class Lifetimes {
  readonly trace: Trace
  /**
   * By event. Of an alloc: the event that ended it, or `trace.count`. Of the event that ended one: the alloc, or -2 - i for the i-th
   * early block. Otherwise NONE.
   */
  readonly partners: Int32Array
  readonly early: EarlyBlocks
  /** Bytes in use before the first event. */
  readonly baseBytes: number
  /** Bytes in use after the last event, by the events and by the blocks of the dump: equal, unless events are missing. */
  readonly endBytes: number
  readonly activeBytes: number
  /** Allocs at an address that was in use already, and the alloc whose end was lost. */
  readonly replaced = new Map<number, number>()
  /** Allocs whose free was requested and is not complete at the end, and the event that requested it. */
  readonly waiting = new Map<number, number>()
  /** The stack of a free is that of the allocation (recorded with context other than "all"). */
  readonly freesRepeatStacks: boolean
  /** Which event ends an allocation; NONE: frees were not recorded. */
  readonly endAction: number

  constructor(device: Device) {
    const { trace, tables } = device
    this.trace = trace
    const { count } = trace
    this.partners = new Int32Array(count).fill(NONE)
    this.early = { addresses: [], sizes: [], stacks: [], streams: [], freedAt: [] }
    this.endAction = endActionOf(device)
    const open = new Int32Array(tables.addresses.count).fill(NONE)
    const requestedAt = new Int32Array(tables.addresses.count).fill(NONE)
    const isSeen = new Uint8Array(tables.addresses.count)
    let [current, base, sameStacks, otherStacks] = [0, 0, 0, 0]
    for (let i = 0; i < count; i++) {
      const action = trace.action(i)
      if (action !== ACTION.alloc && action !== ACTION.free_requested && action !== this.endAction) continue
      const address = trace.address(i)
      if (address < 0) continue
      isSeen[address] = 1
      const before = open[address] as number
      if (action === ACTION.free_requested && action !== this.endAction) {
        requestedAt[address] = i
        continue
      }
      if (action === ACTION.alloc) {
        if (before >= 0) {
          this.replaced.set(i, before)
          this.partners[before] = i
          current -= trace.size(before)
        }
        open[address] = i
        this.partners[i] = count
        current += trace.size(i)
      } else if (before >= 0) {
        this.partners[before] = i
        this.partners[i] = before
        open[address] = NONE
        current -= trace.size(before)
        if (trace.stack(before) === trace.stack(i)) sameStacks++
        else otherStacks++
      } else {
        this.partners[i] = -2 - this.#addEarly(tables.addresses.value(address), trace.size(i), trace.stack(i), trace.stream(i), i)
        base += trace.size(i)
        current -= trace.size(i)
      }
    }
    for (const [address, alloc] of open.entries())
      if (alloc !== NONE && (requestedAt[address] as number) > alloc) this.waiting.set(alloc, requestedAt[address] as number)
    this.freesRepeatStacks = sameStacks > 20 * otherStacks
    let active = 0
    eachActiveBlock(device, (block, segment) => {
      const { addresses, requested, stacks, states } = tables.blocks
      // Where a requested free counts as one, it does so here too.
      if (states[block] === PENDING && this.endAction === ACTION.free_requested) return
      const size = requested[block] as number
      active += size
      const address = tables.addresses.find(addresses[block] as number)
      if (address >= 0 && open[address] !== NONE) return
      // It was freed in the window, and made again after the cut.
      if (device.isCut && address >= 0 && isSeen[address] === 1) return
      this.#addEarly(addresses[block] as number, size, stacks[block] as number, segment.stream, count)
      base += size
    })
    this.baseBytes = base
    this.endBytes = base + current
    this.activeBytes = active
  }

  /** Index at which the allocation of this alloc event ended; `trace.count`: not in the window. */
  endOf(alloc: number): number {
    return this.partners[alloc] as number
  }

  #addEarly(address: number, size: number, stack: number, stream: number, freedAt: number): number {
    const { addresses, sizes, stacks, streams, freedAt: ends } = this.early
    addresses.push(address)
    sizes.push(size)
    stacks.push(stack)
    streams.push(stream)
    return ends.push(freedAt) - 1
  }
}

/** Where completed frees were not recorded, requested ones have to do; unless there were none because all requested ones still wait. */
function endActionOf(device: Device): number {
  const { trace, tables } = device
  const counts = trace.counts()
  if ((counts[ACTION.free_completed] as number) > 0) return ACTION.free_completed
  if ((counts[ACTION.free_requested] as number) === 0) return NONE
  const waiting = new Set<number>()
  eachActiveBlock(device, (block) => {
    if (tables.blocks.states[block] === PENDING) waiting.add(tables.blocks.addresses[block] as number)
  })
  const areWaiting = trace
    .find(ACTION.free_requested)
    .every((i) => trace.address(i) >= 0 && waiting.has(tables.addresses.value(trace.address(i))))
  return areWaiting ? ACTION.free_completed : ACTION.free_requested
}
